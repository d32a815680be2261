"""The conventions of grading by example: what each gold accepts, and what it does not."""

from verifiers import grade

# gold: (right, wrong)
CONVENTIONS: dict[str, tuple[list[str], list[str]]] = {
    "1/2": (
        [
            "0.5", r"\frac{1}{2}", r"\frac12", r"\dfrac{2}{4}", "½", ".5", "0.50", r"$\frac{1}{2}$",
            r"\boxed{\frac12}", "**1/2**", "1/2.", "2/4", r"\tfrac{1}{2}", r"\left(\frac{1}{2}\right)",
            r"0.5 (\frac12)",
        ],
        ["2^{-1}", "0.51", "2", "-1/2", "1/3", r"\frac{1}{2} or 1", "1/2, 1/3", "1/2 (0.6)"],
    ),
    "1/3": ([r"0.\overline{3}", r"0.\bar{3}", "2/6"], ["0.33", "0.3333", "0.333333333"]),
    "3.14": (["3.14", "157/50"], [r"\pi"]),
    r"\pi": (["π", r"$\pi$", "pi"], ["3.14", "3.14159", "22/7"]),
    "25%": (["25", "25%", "0.25", r"25\%", r"25 \%", "25 percent", "25 per cent"], []),
    "25": (["25%", r"25\%"], ["0.25"]),
    "0.25": (["25%"], ["0.25%"]),
    "48": (["48%"], ["4800%", "48 dozen", "48 squared", "48 halved", "48 thousand"]),
    "2/3": (["2 thirds", r"2\text{ thirds}"], ["2", "3 halves"]),
    "200 minutes": (["200", "3 hours 20 minutes", r"3\frac{1}{3} hours"], ["3 hours 2 minutes", "200 s"]),
    "200": (["200 minutes"], ["3 hours 20 minutes"]),
    "1000": (["1,000", "1000.0", "1 000", "1{,}000", "10^3", r"1\,000", r"1.0\times 10^3"], []),
    "1,000,000": (["1000000", "10^6", "10^{6}"], []),
    r"\$5": (["5", "5 dollars", "$5", "$5.00", r"\$5.00"], []),
    "5": (
        [
            "$5", "5 dollars", r"5\text{ cm}", "5 cm", "5 meters", "x=5", "x = 5", "n=5", "f(3)=5", "2+3=5",
            "The answer is 5.", "5.", "$5$", "**5**", r"\(5\)", "the answer is 5", "x=2+3=5", r"5 \\", "5 ", "five",
            "Five", r"\text{five}",
        ],
        [
            "2+3", r"\sum_{i=1}^{5}1", r"\int_0^5 dx", r"\lim_{x\to5}x", "10/2+0", "what is 2+3", "5 or 6",
            "maybe 5 or 6",
        ],
    ),
    "5 cm": (["5", "5 cm", r"5\,\text{cm}", r"5\mathrm{~cm}", "50 mm", "0.05 m"], ["5 m", "5 cm^2"]),
    r"75^\circ": (["75", r"\frac{5\pi}{12}"], ["75 radians"]),
    r"90^\circ": (["90", "90 degrees", "90°", r"90^{\circ}"], []),
    "90": (["90°"], []),
    "12": (["AB=12", "twelve"], []),
    "y=2x+1": (["2x+1", "y=2x+1", "2x-y+1=0", "y-2x-1=0", "2y=4x+2", r"y=2(x+\frac12)"], ["y=2x-1", "2x+2", "x=2y+1"]),
    "1,2": (
        [
            "2,1", "{1,2}", r"\{1,2\}", "x=1 or x=2", "x=1, x=2", "1 and 2", "x=2,1", "1;2", r"x=1\text{ or }x=2",
            r"1\text{ and }2",
        ],
        ["1", "2", "1,2,3", "1,3"],
    ),
    "1": ([], ["1,2", "1 or 2"]),
    "(1,2)": (["(1, 2)", r"\left(1,2\right)", "(1.0,2)", "(1,2)"], ["(2,1)", "[1,2]", "(1,2]", "1,2,3"]),
    r"\{1,2,3\}": (["{3,2,1}", "1,2,3"], ["{1,2}"]),
    "[1,2)": ([r"1 \le x < 2", "[1,2)", r"x\in[1,2)", r"1\leq x<2"], ["(1,2)", "[1,2]"]),
    r"(-\infty,2)": (["x<2", r"(-\infty, 2)", "(-∞,2)"], ["x>2", r"(-\infty,2]", r"(\infty,2)"]),
    r"(-\infty,1)\cup(2,\infty)": (
        [r"(-\infty,1) \cup (2,\infty)", r"x<1\text{ or }x>2", r"(2,\infty)\cup(-\infty,1)", "(-∞,1)∪(2,∞)"],
        [],
    ),
    r"\pm 2": (["2,-2", "-2, 2", r"x=\pm2", "±2", r"x=2\text{ or }x=-2"], ["2", "-2"]),
    r"1\pm\sqrt{2}": ([r"1+\sqrt2, 1-\sqrt2", r"1-\sqrt{2},1+\sqrt{2}"], []),
    "101_2": (["101_2", "101_{2}", r"101_{\text{two}}", "101"], ["101_3", "5"]),
    r"\text{no solution}": (["no solution", "No solutions", "none", r"\emptyset", r"\varnothing", "∅", r"\{\}"], []),
    r"\emptyset": ([], ["0", r"\{0\}"]),
    r"\infty": (["∞", r"+\infty", "infinity"], [r"-\infty"]),
    r"-\infty": ([], [r"\infty"]),
    "A": (
        [
            "(A)", "A.", "a", "choice A", "option A", "(a)", r"\text{A}", r"\textbf{(A)}", "Answer: A", "A",
            "Option A: 5", "Option (A) red",
        ],
        ["B", "AB", "A or B", "A, B", "A = C", "Option A or B", "Option B: A"],
    ),
    "2": (
        ["2.0", "+2", "2.00", r"2\text{ apples}", "2 apples"],
        ["-2", "20", "two hundred", "2x", "x", "", "?", "not 2", "2 or 3", "between 1 and 3"],
    ),
    "3/4": (["0.75", "6/8", r"\frac{3}{4}", "¾", "75%"], []),
    r"1\frac{1}{2}": (["3/2", "1.5", "1 1/2", r"\frac32"], []),
    r"-1\frac{1}{2}": (["-3/2", "-1.5"], []),
    "3/2": (["1 1/2", r"1\frac12"], []),
    r"\sqrt{2}": (["√2", "2^{1/2}", r"\frac{2}{\sqrt{2}}", r"\sqrt2"], ["1.414", "1.41421356"]),
    r"\frac{\sqrt{3}}{3}": ([r"\frac{1}{\sqrt{3}}", "1/√3", "3^{-1/2}"], []),
    "x^2+2x+1": (["(x+1)^2", "1+2x+x^2", "x^{2}+2x+1", "x²+2x+1"], ["(x-1)^2", "x^2+2x"]),
    "(x-1)(x+2)": (["x^2+x-2", "(x+2)(x-1)"], []),
    r"\frac{a+b}{2}": (["(a+b)/2", r"\frac{1}{2}(a+b)", "a/2+b/2"], ["a+b/2"]),
    r"\begin{pmatrix}1&2\\3&4\end{pmatrix}": (
        [r"\begin{bmatrix}1&2\\3&4\end{bmatrix}", r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}"],
        [r"\begin{pmatrix}1&3\\2&4\end{pmatrix}"],
    ),
    "x^2": ([r"x\cdot x"], ["x^2+e^{-999}"]),
    "x>2": (["2<x", r"(2,\infty)", r"x \gt 2"], ["x<2", r"x\ge2"]),
    "Monday": (["monday", r"\text{Monday}"], ["Tuesday"]),
    "yes": (["Yes", r"\text{yes}", "YES."], ["no"]),
    "12:30": (["12:30", r"12\!:\!30"], ["12:31"]),
    "3+4i": (["4i+3", "3+4 i", r"3+4\mathrm{i}"], ["3-4i", "4+3i"]),
    "9007199254740993": (["9,007,199,254,740,993"], ["9007199254740992"]),
    "1/2004!": ([], ["1/2006!"]),
    "10^{-20}": ([r"1\times10^{-20}", r"\frac{1}{10^{20}}"], ["0", r"2\times 10^{-20}", "10^{-21}"]),
    r"6.02\times10^{23}": ([r"6.02 \cdot 10^{23}", "602000000000000000000000"], []),
    r"2\pi": ([r"2 \pi", "2π", r"\pi\cdot2"], ["6.28"]),
    r"\frac{\pi}{4}": (["π/4", r"0.25\pi", r"\pi/4"], ["45"]),
    r"\log 2": ([r"\log 2", r"\log(2)"], []),
    r"\ln 2": ([r"\ln(2)", r"\ln{2}"], []),
    "n(n+1)/2": ([r"\frac{n(n+1)}{2}", r"\frac{n^2+n}{2}"], []),
    "2^{10}": (["1024", "2^{10}"], []),
    "120": (["120"], []),
    "5!": (["120", "5!"], []),
    r"\binom{5}{2}": (["10", r"\binom{5}{2}"], []),
    "0": (["0", "0.0", "-0", "zero"], ["1", "", "none", "10^{-200}"]),
    r"(3,\frac{\pi}{2})": (["(3,π/2)", r"\left( 3, \frac{\pi}{2} \right)"], []),
    "x=3,y=4": (["y=4, x=3", "x=3, y=4", "3,4", "(3,4)", "(x,y)=(3,4)"], ["4,3", "(4,3)", r"\{3,4\}", "(y,x)=(3,4)"]),
    "1<x<3": (["(1,3)", "3>x>1"], ["[1,3]"]),
    r"\frac{1}{2}x": (["x/2", "0.5x"], []),
    "2/3 hours": (["2/3"], []),
    r"15\text{ cm}^2": (["15", r"15 \text{ cm}^2", "15 cm^2"], []),
    "January 5": (["January 5", "january 5"], []),
    "100": (["one hundred", "100.", "100"], []),
    "21": (["twenty-one", "twenty one"], []),
    "ACD": (["A, C, D", r"A,\;C,\;D", "A and C and D"], ["A, C", "A or C or D", "A, B, C, D"]),
    "(b)": (["B", "b", "(b) Gamma", r"(b) $\theta^2$"], ["(c) Gamma", "(b) or (c)", "(b) is wrong", "(a), (b)"]),
    # a pair is no interval, and a formula in n is no set
    "(8,-2)": (["x=8, y=-2"], ["none", "DNE", r"\emptyset", "no solution", "8<x<-2"]),
    "(4,4)": ([], ["none", r"\{\}"]),
    "n-1": (["-1+n", r"n-1, n \in \mathbb{Z}"], ["all integers", r"n+5, n\in\mathbb{Z}", "any even integer"]),
    "2n": ([r"2n, n \ge 1"], ["any even integer", r"2k, k\in\mathbb{Z}"]),
    "f(n)=n": (["n"], ["all integers"]),
    "N=n": (["n", "n=N"], ["x = y", "y = x"]),
    r"\lceil n/2\rceil+1": ([], ["all integers", "any integer"]),
    r"(n-2)\pi": ([r"n\pi-2\pi"], [r"n\pi+\pi", r"k\pi, k \in \mathbb{Z}"]),
    "2k, k \\in \\mathbb{Z}": (["any even integer", r"2n+4, n \in \mathbb{Z}"], ["all integers"]),
    # work left undone; what over six digits nobody multiplies out is left as it is
    "42": (["84/2", "6*7=42"], [r"7\cdot6", "7!/5!", r"\binom{42}{1}", r"\log_2 2^{42}", "42+x-x", "42x^0"]),
    "132": ([], ["12!/10!", r"\frac{12!}{10!}"]),
    "1/100!": (["1/100!"], []),
    "x=3": (["x-3=0", "3=x"], ["2x=6", "2x+1=7", "x+2=5", r"\frac{x}{3}=1", "3 \u2225 x=3"]),
    # an equation of values that are certainly different says nothing, but one may be rounded
    "17": (["m+n = 9+8 = 17", r"A = \frac{67}{4} = 17"], ["x = 16 = 17", "m+n = 8+8 = 17", r"x \approx 17"]),
    "17 cm": (["170 mm = 17 cm", "L = 170 mm = 17 cm"], ["16 cm = 17 cm", "L = 16 cm = 17 cm"]),
    "3.1": ([r"x = 3.14 \approx 3.1", r"x \approx 3.1"], [r"3.2 \approx 3.1"]),
    "16": (["16.0", "2^4 = 16"], ["16 = 2^4", "(2i)^4", "2^4", "2^4=2^4", r"\sqrt{256}", "4!-8"]),
    "3628800": (["10!"], ["9!+9!"]),
    str(2**100): (["2^{100}"], [r"2^{50}\cdot2^{50}"]),
    # decorations: what is not printed as part of the value is left out, an accent makes a name of a letter
    "84": (
        [r"84\tag{85}", r"84\phantom{85}", r"84\label{85}", r"\underline{84}", "it must be 84"],
        [r"85\tag{84}", r"85\phantom{84}", r"\hat{84}", r"\tilde{84}", r"\vec{84}", r"\bar{84}", "it would be 84"],
    ),
    r"\hat{x}": (["x"], []),
    "7": (
        [r"7 \text{ days}", "7 days", "it is 7", "x = 7", "$x = 7$", r"\[7\]", "So the answer is $7$."],
        ["I don't know", "7 is wrong", "not 7", "the answer is not 7", "7 or 8", "7, 8", "{7, 8}", "6-8"],
    ),
    "p - q": (["p-q", "-q+p"], ["q-p"]),
    "5x - 7y + 11z + 4 = 0": (["10x-14y+22z+8=0", "7y-5x-11z-4=0"], ["5x-7y+11z-4=0"]),
    r"\frac{3\sqrt{3}}{4}": ([r"\frac{3}{4}\sqrt{3}", "3√3/4"], []),
    r"\sqrt[3]{2}": (["2^{1/3}", r"\sqrt[3]{2}"], []),
    "e^2": (["e^{2}", "e^2"], []),
    r"\sin x": ([r"\sin(x)"], []),
    "1:2": (["1:2", "1 : 2"], ["2:1"]),
    r"\frac{-1}{2}": (["-1/2", r"-\frac{1}{2}", "-.5"], []),
    "0.1": (["1/10", ".1", "0.10"], []),
    "-5": (["−5", "-5.0", "{-5}"], ["5", "- 6"]),
    "12.5": ([r"12\frac{1}{2}", "25/2"], []),
    "(x+1)(x+2)": (["(1+x)(2+x)"], []),
    "3": (["3"], []),
    "(1,2),(3,4)": (["(3,4),(1,2)", r"\{(1,2),(3,4)\}"], ["(1,2)", "(2,1),(3,4)"]),
    r"\text{(B)}": (["B", "(B)"], []),
    "B": (["B"], []),
    "even": (["Even", "even"], []),
    "2, 3, 5": (["5,3,2", "2,3 and 5", "2, 3, and 5"], []),
    r"\frac{1}{x+1}": (["(x+1)^{-1}", "1/(x+1)"], ["1/x+1"]),
}  # fmt: skip


def test_right_answers_are_correct() -> None:
    rows = [(gold, p, grade(p, gold)) for gold, (right, _) in CONVENTIONS.items() for p in right]
    assert [row for row in rows if not row[-1]] == []


def test_wrong_answers_are_not_correct() -> None:
    rows = [(gold, p, grade(p, gold)) for gold, (_, wrong) in CONVENTIONS.items() for p in wrong]
    assert [row for row in rows if row[-1]] == []


def test_quotient_by_zero_is_no_number():
    for answer in ("0 0/0", "0/0", r"\frac{5}{3-3}", r"0 \cdot \frac{1}{0}"):
        assert not grade(answer, "0")
        assert not grade("0", answer)
