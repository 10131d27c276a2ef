"""Optional constructs of random programs, one kind in each file: `python -m tests.fuzz --kinds complex`."""

from __future__ import annotations

from tests.fuzz.constructs.classes import Classes
from tests.fuzz.constructs.complex_numbers import ComplexNumbers
from tests.fuzz.constructs.construct import Construct
from tests.fuzz.constructs.dataclass import Dataclasses
from tests.fuzz.constructs.dictionaries import Dictionaries
from tests.fuzz.constructs.draws import Draws
from tests.fuzz.constructs.exceptions import Exceptions
from tests.fuzz.constructs.generators import Generators
from tests.fuzz.constructs.keywords import Keywords
from tests.fuzz.constructs.parallel import Parallel
from tests.fuzz.constructs.records import Records

CONSTRUCTS: dict[str, type[Construct]] = {
    "classes": Classes,
    "complex": ComplexNumbers,
    "dataclasses": Dataclasses,
    "dictionaries": Dictionaries,
    "draws": Draws,
    "exceptions": Exceptions,
    "generators": Generators,
    "keywords": Keywords,
    "parallel": Parallel,
    "records": Records,
}
