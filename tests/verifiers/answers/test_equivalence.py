"""Typed values: what each type of gold accepts, and the near misses beside it."""

import pytest

from verifiers.answers.layer import compare

# gold: (equal, different)
CASES: dict[str, tuple[list[str], list[str]]] = {
    r"(-\infty,1)\cup(2,\infty)": (
        ["x<1 or x>2", r"\mathbb{R}\setminus[1,2]", "]-∞;1[ ∪ ]2;+∞[", r"\{x \mid x<1 \text{ or } x>2\}"],
        ["x<1 and x>2", r"x \le 1 or x>2", r"\mathbb{R}\setminus(1,2)", "(1,2)"],
    ),
    r"\mathbb{R}\setminus\{2\}": (
        [r"x \ne 2", "all real numbers except 2", r"(-\infty,2)\cup(2,\infty)", r"\{x : x \neq 2\}"],
        [r"x \ne 3", r"x \ne 2, 3", "all positive real numbers except 2", "2"],
    ),
    "(-3,3)": (["|x|<3", "-3<x<3", "x>-3 and x<3"], ["x^2<9", r"|x|\le 3", "|x|>3", "[-3,3]"]),
    "[1,3]": ([r"[1,2]\cup[2,3]", r"1 \le x \le 3"], [r"[1,2)\cup(2,3]", "(1,3)"]),
    "x>2": ([r"(2,\infty)", "2<x"], ["y>2", r"x \ge 2", "2x>4"]),
    r"\begin{cases} x & x \ge 0 \\ 3 & x<0 \end{cases}": ([], [r"\begin{cases} 2x & x \ge 0 \\ 5 & x<0 \end{cases}"]),
    r"\frac{\pi}{4}+k\pi, k\in\mathbb{Z}": (
        [
            r"\frac{(4n+1)\pi}{4} \text{ for any integer } n",
            r"45^\circ + 180^\circ k, k \in \mathbb Z",
            r"x = \frac{\pi}{4} + 2\pi m \text{ or } x = \frac{5\pi}{4} + 2\pi m, m \in \mathbb{Z}",
        ],
        [r"\frac{\pi}{4}+2k\pi, k\in\mathbb{Z}", r"\frac{\pi}{4}", r"-\frac{\pi}{4}+k\pi, k \in \mathbb{Z}"],
    ),
    r"x \equiv 3 \pmod 7": (
        ["7k+3 for integer k", r"x \equiv 10 \pmod 7", r"x=7k-4, k \in \mathbb Z"],
        ["14k+3 for integer k"],
    ),
    r"2^n \text{ where } n \ge 0": ([r"2^{m-1} \text{ with } m \ge 1"], [r"2^n \text{ for } n \ge 1"]),
    r"(2k, 3k), k \in \mathbb{Z}": ([r"(-2m, -3m) \text{ for integers } m"], [r"(3k, 2k), k \in \mathbb{Z}"]),
    "(x,y) = (3,-4)": (["(3,-4)", "x=3, y=-4", "y=-4, x=3"], ["(-4,3)", "(y,x)=(3,-4)", r"\{3,-4\}"]),
    "(3,-4)": (["P(3,-4)", "P = (3,-4)", r"\begin{pmatrix}3\\-4\end{pmatrix}"], ["[3,-4]", "3,-4", "P(3,4)"]),
    "f(x)=2x+1": (["f(t)=2t+1", "2x+1", "f(x) = 2x+1 for all x"], ["f(x)=2x-1", "2t+1", "g(x)=2x+1"]),
    "a_n=2n+1": (["a_k=2k+1", "2n+1"], ["a_{n+1}=2n+1"]),
    "x=1 or x=2": (["2, 1", r"\{1,2\}", r"x \in \{1,2\}"], ["1", "1,2,3", "y=1 or y=2"]),
    r"(\pm1,2)": (["(1,2),(-1,2)"], ["(1,2)", r"(1,\pm2)"]),
    "3:4": (["6:8", "3/4", "3 to 4"], ["4:3", "3:5"]),
    "12:30": (["12:30"], ["24:60"]),
    "1011_2": (["(1011)_2", "1011 in base 2", "1011"], ["1011_3", "11"]),
    "24": (["(B) 24", "B: 24"], ["(B) 25"]),
    r"\textbf{(B) } 24": (["B", "24", "(B) 24"], ["C", "(C) 24", "25"]),
    "|x-3|": ([r"\sqrt{(x-3)^2}", "|3-x|"], ["x-3", "3-x"]),
    r"\sqrt{ab}": ([r"\sqrt{a}\sqrt b"], [r"\sqrt{a+b}"]),
    "2x-3y+6=0": (["y=2x/3+2", "4x-6y+12=0"], ["2x-3y=6", "x=2y"]),
    r"\frac15\begin{pmatrix}3&4\\4&-3\end{pmatrix}": (
        [r"\begin{bmatrix}3/5&0.8\\0.8&-3/5\end{bmatrix}"],
        [r"\begin{pmatrix}3&4\\4&-3\end{pmatrix}"],
    ),
    r"\sin 75°": ([r"\frac{\sqrt6+\sqrt2}{4}"], [r"\frac{\sqrt6-\sqrt2}{4}", "0.9659258262890683"]),
    "135°": (["135", r"\frac{3\pi}{4}"], ["45°", "135'"]),
    "3.14": (["approximately 3.14", "157/50"], [r"\pi"]),
    "5": (["a+b=5", "2+3=5"], ["2+3", "x+2=5", "n^2=5", "approximately 5", r"\frac{10}{1+1}"]),
    r"\text{no solution}": ([r"\emptyset", r"\{\}"], ["0", r"\{0\}", r"\{\emptyset\}"]),
    "three halves": (["3/2", "1.5"], ["2/3"]),
}


def test_equal_values_are_equal() -> None:
    rows = [(gold, each, compare(gold, each)) for gold, (equal, _) in CASES.items() for each in equal]
    assert [row for row in rows if row[-1] is None or not row[-1][0]] == []


def test_near_misses_are_not_equal() -> None:
    rows = [(gold, each, compare(gold, each)) for gold, (_, different) in CASES.items() for each in different]
    assert [row for row in rows if row[-1] is not None and row[-1][0]] == []


@pytest.mark.parametrize("text", ["1/2x", r"x\int_0^1 t dt"])
def test_expressions_that_the_grammar_cannot_read_are_left_to_algebra(text: str) -> None:
    assert compare(text, text) is None and compare("x", text) is None


@pytest.mark.parametrize("gold", ["42", "(1,2)", r"\text{Alice}", "C", "x+1"])
@pytest.mark.parametrize("text", ["not 42", "42 or so", "print(42)", "answer(7)"])
def test_words_are_never_left_to_algebra(gold: str, text: str) -> None:
    assert compare(gold, text) == (False, "text")


@pytest.mark.parametrize("text", [r"\sum_{k=1}^{5} 1", r"\max(3, 5)", r"\int_0^5 dx", "((", "5..6", "x" * 1001])
def test_a_number_as_gold_leaves_nothing_to_algebra(text: str) -> None:
    assert compare("5", text) == (False, "unread")


def test_hostile_nesting_is_bounded() -> None:
    for text in ("(" * 39 + "1" + ")" * 39, "-" * 900, "|" * 300, "1," * 290, r"\sqrt{" * 38 + "2" + "}" * 38):
        compare(text, "5")
    assert compare("(" * 300, "5") is None and compare("5", "(" * 300) == (False, "unread")


def test_family_whose_constants_do_not_count_is_not_equal() -> None:
    gold = r"y=C_1\cos 2x+C_2\sin 2x"
    for answer in (r"y=0C_1\cos x+C_2\sin x", r"y=0C_1\cos 2x+C_2\sin 2x", r"y=0C_1+0C_2+\sin x"):
        result = compare(gold, answer)
        assert result is None or not result[0]
