"""Problems and a prompt template of the doctor tests."""

from data import Problem

SUMS = [Problem(f"sums/{i}{j}", f"{i}+{j}?", str(2 + (i + j) % 3), "sums", "train") for i in range(6) for j in range(2)]

QUESTION = "Question: {question} Answer:"  # a prompt template
