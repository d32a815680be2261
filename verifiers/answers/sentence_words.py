"""Words of sentences: what states a value, changes it, doubts or denies it, or only stands around it."""

from __future__ import annotations

VERBS = frozenset(
    [
        "is",
        "are",
        "equals",
        "equal",
        "be",
        "was",
        "were",
        "get",
        "gets",
        "have",
        "has",
        "obtain",
        "gives",
        "yields",
        "exist",
    ]
)
_SAFE_WORDS = (
    "exactly precisely only just simply total altogether overall namely final answer the so therefore thus hence then "
    "a an of minimum maximum number value given by equal to found indeed always also now clearly coordinates "
    "length area volume perimeter circumference radius diameter height width probability chance size measure cost "
    "price us"
)
SAFE = frozenset(_SAFE_WORDS.split())  # between the verb and the value
# In front of "of" there.
_QUANTITY_WORDS = (
    "total minimum maximum value length area volume perimeter radius diameter height width probability chance answer "
    "speed velocity acceleration mass time distance force energy weight temperature age rate angle slope"
)
QUANTITIES = frozenset(_QUANTITY_WORDS.split())
SAFE |= QUANTITIES
# Directly in front of the only number of a sentence: what has, does or comes to it.
_STATING_WORDS = (
    "has have had need needs needed make makes made take takes took cost costs pay pays paid earn earns earned sell "
    "sells sold buy buys bought spend spends spent use uses used eat eats ate drink drinks drank read reads walk walks "
    "walked run runs ran drive drives drove travel travels traveled win wins won score scores scored collect collects "
    "collected save saves saved receive receives received owe owes owed own owns owned find finds counted contains "
    "contain holds hold requires require required guarantee guarantees weighs weigh weighed lasts last lasted "
    "produces produced yields finished started leaves left totals gets got bakes baked planted picked caught filled "
    "charges charged measure measures measured play plays played solve solves solved attend attends attended visit "
    "visits visited cover covers covered carry carries carried complete completes completed give gives gave"
)
STATING = VERBS | frozenset(_STATING_WORDS.split())
STATING_PHRASES = frozenset(
    tuple(words.split())
    for words in (
        "increases by", "increased by", "decreases by", "decreased by", "total of", "minimum of", "maximum of",
        "remainder of", "chance of", "probability of",
        *(f"{verb} {after}" for after in ("after", "in") for verb in (
            "ends", "ended", "end", "finishes", "finished", "finish", "stops", "stopped", "stop", "terminates", "meet",
            "halts", "concludes",
        )),
    )
)  # fmt: skip
_BEHIND_TO_WORDS = (
    "need make take pay earn sell buy spend use eat drink read walk run drive travel win score collect save play solve "
    "visit cover carry complete give receive hire order plant bake send print lift climb hold find add attend wait "
    "stay work study practice write choose select remove ask press check test color draw"
)
STATING_BEHIND_TO = frozenset(_BEHIND_TO_WORDS.split())  # "needs to buy 45 eggs"
# What says "equals" in several words.
EQUATING = tuple(
    tuple(words.split())
    for words in (
        "comes to", "came to", "amounts to", "sums to", "evaluates to", "simplifies to", "reduces to", "comes out to",
        "came out to", "works out to", "worked out to", "comes out at", "works out at", "adds up to", "add up to",
        "added up to", "sum up to", "sums up to", "comes out as", "works out as",
        "end up with", "ends up with", "left with", "leaves us with", "leaves him with", "leaves her with",
    )
)  # fmt: skip
# Directly in front of a number at the end of a sentence that says where something is, lies or happens.
PLACES = frozenset(
    tuple(words.split()) for words in ("at position", "in position", "on day", "in year", "in the year", "at index")
)
PLACING = frozenset(["lies", "stands", "sits", "occurs", "happens", "appears", "ends", "stops", "lands", "finishes"])
# Behind the value, where there is a verb: that it is the answer.
_PREDICATE_WORDS = (
    "is are was were has have had does do will would should can may must could been being leads gives yields violates "
    "exceeds seems seem looks look appears appear remains remain becomes become goes comes precedes follows occurs "
    "lies stands belongs came went"
)
PREDICATES = frozenset(_PREDICATE_WORDS.split())
_AFFIRMING_WORDS = (
    "is are the a our my your final correct required desired answer value smallest largest least greatest minimum "
    "maximum minimal maximal possible such integer number works and only solution unique indeed total result it that "
    "optimal best valid sufficient necessary attained achieved positive natural one we want this"
)
AFFIRMING = frozenset(_AFFIRMING_WORDS.split())
_NEEDED_WORDS = "needed required necessary possible sufficient enough used"
# In front of the first comma of a sentence.
_OPENINGS = (
    "in total; in all; as a result; in conclusion; in summary; in short; in the end; to conclude; to summarize; "
    "altogether; overall; finally; putting it all together; putting everything together; after simplification; "
    "after simplifying; as desired"
)
OPENINGS = frozenset(tuple(words.split()) for words in _OPENINGS.split("; "))
CONCLUDING = ("so", "hence", "thus", "therefore", "giving", "yielding", "whence")
# In front of a clause that is said to hold.
ASSERTIONS = tuple(
    tuple(words.split())
    for words in (
        *(f"it can be {seen} that" for seen in ("checked", "verified", "shown", "seen", "proved", "proven")),
        *(f"{we} can {see} that" for we in ("we", "one") for see in ("check", "verify", "show", "see", "prove")),
        *(f"{this} {shows} that" for this in ("this", "which") for shows in ("shows", "means", "implies", "proves")),
        "note that", "notice that", "observe that", "we have shown that", "we see that", "it is easy to see that",
    )
)  # fmt: skip
# In front of a first clause that says how the value is found.
_INTRODUCING_WORDS = (
    "including counting since because by using from adding summing combining multiplying substituting solving "
    "simplifying applying taking setting plugging computing evaluating considering therefore"
)
INTRODUCING = frozenset(_INTRODUCING_WORDS.split())
_CLOSING_WORDS = (
    "so we are done; and we are done; we are done; as required; as desired; as claimed; as wanted; as needed; done; "
    "by symmetry; by inspection; by induction; by construction; "
    "as was to be shown; and the proof is complete"
)
CLOSINGS = tuple(words.split() for words in _CLOSING_WORDS.split("; "))  # behind the last comma
PRINCIPLES = (
    "principle",
    "theorem",
    "rule",
    "law",
    "formula",
    "identity",
    "inequality",
    "lemma",
    "argument",
    "property",
)
# At the end of a sentence, behind what is counted.
PROPERTIES = tuple(
    tuple(words.split())
    for words in (
        *(f"with {this} {property_}" for this in ("this", "that", "the given", "the desired", "the required")
          for property_ in ("property", "properties")),
        "with these properties", "having this property",
        *(f"{satisfying} {all_} {conditions}" for satisfying in ("satisfying", "that satisfy", "meeting")
          for all_ in ("the", "this", "these", "all", "the given", "all the")
          for conditions in ("condition", "conditions", "requirements", "constraints")),
    )
)  # fmt: skip
COUNTING = ("number", "count", "total")  # "is the number of ..." behind a value
REJECTED = ("extraneous", "rejected", "discarded", "inadmissible", "invalid", "negative", "impossible")
REJECTING = ("rejecting", "discarding", "ignoring", "excluding")
NEEDED = frozenset(_NEEDED_WORDS.split())  # behind "are": 12 coins are needed
RANGED = ("integers", "numbers", "primes", "values", "divisors")  # things that a range may restrict
RANGES = ("less", "greater", "between", "from", "below", "up", "at", "not")
BOUNDS = ("than", "or", "equal", "to", "and", "most", "least", "exceeding", "inclusive")  # behind one of RANGES
JOINING = (
    "of",
    "and",
    "to",
    "by",
    "from",
    "into",
    "versus",
    "vs",
    "on",
    "against",
    "among",
)  # not directly behind the value
PRONOUNS = ("them", "him", "her", "us", "me", "you", "it")
ADVERBS = ("exactly", "precisely", "only", "just")
# In any part of the sentence.
_HEDGE_WORDS = (
    "not neither nor maybe perhaps possibly probably either guess unsure unknown think could might cannot can't isn't "
    "unless depends should wrong incorrect around about approximately roughly but false never untrue "
    "may failed contradiction contradicts rejected ruled refuted doubt doubtful unlikely hardly disagree reject "
    "exclude excluded thought believed assumed supposed claimed rumored guessed predicted"
)
HEDGES = frozenset(_HEDGE_WORDS.split())
# In the part of a sentence that states the value.
_DOUBT_WORDS = (
    "or if whether instead rather than assume assuming suppose doesn't no none nobody nothing except impossible fails "
    "fail"
)
DOUBT = (HEDGES | frozenset(_DOUBT_WORDS.split())) - {"about", "approximately"}
# Between the verb and the value, or behind the value: what is stated is something else.
_RELATIVE_WORDS = (
    "plus minus times over divided less more least most fewer greater smaller larger after before between beyond "
    "above below under up until within exceeds exceed twice half halved double doubled triple tripled squared square "
    "cubed cube root roots factorial power powers opposite negation negative inverse reciprocal sum difference "
    "product quotient anything divides divide divisible divisor divisors equation lemma step numerator denominator "
    "prime composite too bound bounds bounded digit digits something option options candidate candidates ignore "
    "accept close near nearly almost next previous multiple multiples factor factors about approximately even odd mod "
    "modulo remainder base short shy"
)
RELATIVE = frozenset(_RELATIVE_WORDS.split())
CONDITIONS = ("where", "such", "provided", "given")  # behind a value: it holds for a part of what is asked
ASSUMPTIONS = ("suppose", "assume", "assuming", "whether", "if")
# Beside the only number of a sentence, which is then one of several things or a name.
AMONG = frozenset(["or", "and", "up", "out", "infinitely", "them", "these", "those", "one"])
# In the subject of a sentence, which then says something of another number.
_OTHER_WORDS = (
    "i previous next other another naive someone somebody bound "
    "bounds mistake trap estimate example candidate candidates distractor decoy hint without otherwise originally "
    "initially case half twice double before let approximation old original former initial earlier"
)
OTHERS = frozenset(_OTHER_WORDS.split())
# One of several answers: "one solution is 7".
# Quantities that something has: "has degree 36".
QUANTITY_NOUNS = QUANTITIES | {"degree", "order", "rank", "dimension", "cardinality", "size", "determinant", "trace"}
# What makes another number of the answer: "the answer plus 2 is 36"; the participles also of "it": "doubled, it is 36".
_CHANGING_WORDS = (
    "plus minus times half twice double square cube root reciprocal opposite negative inverse sum difference product "
    "quotient power multiplied divided floor ceiling part factor factors divisor divisors digit digits multiple"
)
PARTICIPLES = frozenset(
    ["squared", "cubed", "doubled", "halved", "tripled", "increased", "decreased", "reduced", "multiplied"]
)
CHANGING = frozenset(_CHANGING_WORDS.split()) | PARTICIPLES
# Behind a noun and "were": "54 tickets were sold".
_PASSIVE_WORDS = (
    "sold made baked eaten used needed planted bought sent played picked produced served printed built drawn"
)
PASSIVES = frozenset(_PASSIVE_WORDS.split())
MODALS = ("to", "must", "can", "will", "should")
ONE_OF = ("one", "first", "second", "third", "last", "possible")
ANSWERS = ("solution", "root", "answer", "possibility", "possible", "case")
PLAIN_SIGNS = (".", ",", ":", "%", "$", "-")
# Behind a comma: a clause that says something about the value.
# Directly behind the value: "37 and it is attained at x = 3".
JOINED_CLAUSES = tuple(
    tuple(f"and {subject} {verb}".split())
    for subject in ("it is", "this is", "is", "that is", "it")
    for verb in ("attained", "achieved", "reached", "obtained", "occurs")
)
CLAUSES = ("which", "attained", "achieved", "reached", "obtained", "occurring", "when", "as", "since")
_OBJECT_WORDS = (
    "solution answer number integer value pair triple function polynomial root prime point sequence set triangle "
    "quadruple tuple real positive natural rational"
)
OBJECTS = frozenset(word + ending for word in _OBJECT_WORDS.split() for ending in ("", "s"))
_REMARK_WORDS = (
    "rounded exact exactly the answer to nearest decimal decimals place places significant figures digits integer "
    "tenth hundredth thousandth whole number cent correct total in"
)
REMARKS = frozenset(_REMARK_WORDS.split())
REASONS = ("since", "because", "by", "using", "via", "as", "when", "attained", "achieved", "namely")
APPROXIMATELY = ("approximately", "approx", "about", "roughly", "around")
_NOTHING_WORDS = "such exist exists possible satisfy satisfies the of in this equation can be"
NOTHING = OBJECTS | frozenset(_NOTHING_WORDS.split())
_LIMIT_WORDS = "limit integral maximum minimum derivative inverse sum series such a an it"
LIMITS = frozenset(_LIMIT_WORDS.split())  # what may not exist
HAVING = ("has", "have", "had")
HAVING_NOTHING = (["does", "not", "have", "any"], ["do", "not", "have", "any"], ["does", "not", "have", "a"])
_BEFORE_NOTHING_WORDS = "there is are exist exists so hence thus therefore the equation system has"
BEFORE_NOTHING = frozenset(_BEFORE_NOTHING_WORDS.split())
DENIALS = frozenset(["not", "wrong", "incorrect", "false", "but", "or", "except", "impossible", "never", "unless"])
