import pytest

from verifiers.normalise import canonical
from verifiers.structure import Shape, equal, shape, split


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,2,3", Shape(("1", "2", "3"), order=False)),
        ("2 and 2 and 3", Shape(("2", "3"), order=False)),
        (r"\{5\}", Shape(("5",), order=False)),
        ("{1, 2}", Shape(("1", "2"), order=False)),
        ("(1,2)", Shape(("1", "2"), order=True, brackets="()")),
        ("[1,2,3]", Shape(("1", "2", "3"), order=True)),
        (r"\langle 1,2 \rangle", Shape(("1", "2"), order=True, brackets="()")),
        (r"1 < x \le 5", Shape(("1", "5"), order=True, brackets="(]")),
        ("5 > x", Shape((r"-\infty", "5"), order=True, brackets="()")),
        ("x >= 3", Shape(("3", r"\infty"), order=True, brackets="[)")),
        (r"3 \ge x > 1", Shape(("1", "3"), order=True, brackets="(]")),
        (r"2 \pm 1", Shape(("2+1", "2-1"), order=False)),
        (r"(0,1) \cup (2,3)", Shape(("(0,1)", "(2,3)"), order=False)),
        (r"\begin{bmatrix}1&2\\3&4\end{bmatrix}", Shape(("1", "2", "3", "4"), order=True, brackets="matrix 2 2")),
        ("1,234", None),
        ("x+1", None),
        ("f(x,y)", None),
        ("(x-1)(x+2)", None),
        ("a<b<c", None),
        ("x<y", None),
        ("12 apples", None),
        ("", None),
    ],
)
def test_the_shape_of_an_answer(text: str, expected: Shape | None) -> None:
    assert shape(canonical(text)) == expected


def test_splitting_keeps_brackets_whole() -> None:
    assert split("(1,2),[3,4),{5,6}") == ["(1,2)", "[3,4)", "{5,6}"]
    assert split("f(x=1)=2", "=") == ["f(x=1)", "2"]


def test_order_matters_for_tuples_and_not_for_sets() -> None:
    same = str.__eq__
    assert equal(Shape(("1", "2"), order=False), Shape(("2", "1"), order=False), same)
    assert not equal(Shape(("1", "2"), order=True), Shape(("2", "1"), order=True), same)
    assert not equal(Shape(("1", "2"), order=False), Shape(("1", "2", "3"), order=False), same)
    assert not equal(Shape(("1", "1"), order=False), Shape(("1", "2"), order=False), same)
    assert not equal(Shape(("1", "2"), order=True, brackets="[)"), Shape(("1", "2"), order=True, brackets="()"), same)
