# SPDX-License-Identifier: Apache-2.0
"""One page that shows a result: self-contained, readable without a network.

The words and tables are HTML that needs no script; the script draws the charts and filters. Vega-Lite draws them
(decision 20); its code comes out of the package vl-convert-python and into the page."""

import json
from contextlib import suppress
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from tocsin_lab.analyse.answers import answer_all
from tocsin_lab.analyse.summary import tally
from tocsin_lab.analyse.verdict import Outcome
from tocsin_lab.errors import LabError, complain
from tocsin_lab.files import reason_of, write_whole
from tocsin_lab.parsing import as_json
from tocsin_lab.present.cards import cards, findings
from tocsin_lab.present.charts import SHARES
from tocsin_lab.present.circumstances import groups, history, quiet, toolchains
from tocsin_lab.present.context import Context
from tocsin_lab.present.sections import by_reason, losses, sections, targets
from tocsin_lab.present.numerals import UNITS
from tocsin_lab.present.predictions import predictions
from tocsin_lab.records import Result, in_words

try:
    import vl_convert
except ImportError:  # there is no build of it for this kind of machine
    vl_convert = None

PAGE = Path(__file__).with_name("page")
VEGA_LITE = "6.4"
KEPT = Path(__file__).resolve().parents[3] / "build" / "lab"


class ReportError(LabError):
    """No report can be made."""


@cache
def chart_library() -> str:
    """It sets window.vegaEmbed. Making it takes 1.5 s, so it is made once and kept."""
    if vl_convert is None:
        raise ReportError("needs the Python package vl-convert-python; `./dev lab report` on another machine")
    kept = KEPT / f"charts-{VEGA_LITE}-{vl_convert.__version__}.js"
    with suppress(OSError):
        return kept.read_text(encoding="utf-8")
    made = vl_convert.javascript_bundle(vl_version=VEGA_LITE)
    with suppress(OSError):
        write_whole(kept, lambda file: file.write(made))
    return made


def script_data(context: Context) -> Markup:
    """What the script needs. To be called when all sections have added their charts."""
    shown = [one for one in context.result.contestants if one.name in context.seen]
    data = {
        "contestants": [{"name": one.name, "label": one.label, "role": one.role} for one in shown],
        "shares": SHARES,
        "units": UNITS,
        "charts": as_json(context.charts),
    }
    return Markup(json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"))


def make_report(result: Result) -> str:
    context = Context(result)
    if not context.cases:
        raise ReportError("nothing was measured, so there is nothing to report")
    goals = targets(context)
    counts = tally(context.cases)
    outcomes = [one.outcome for one in goals]
    answers = answer_all(context.cases, context.contestants)
    parts = {
        "result": result,
        "findings": findings(context, answers),
        "answers": cards(context, answers),
        "losses": losses(context),
        "targets": goals,
        "missed": by_reason([one for one in goals if one.outcome is Outcome.MISSED]),
        "sections": sections(context, answers),
        "scaling": predictions(context),
        "history": history(context),
        "groups": groups(context),
        "toolchains": toolchains(context),
        "quiet": quiet(context),
        "verdicts": {one.name: count for one, count in counts.items()},
        "compared": sum(counts.values()),
        "outcomes": {one.name: outcomes.count(one) for one in Outcome},
        "licences": (PAGE / "licences.txt").read_text(),
        "style": Markup((PAGE / "page.css").read_text()),
        "script": Markup((PAGE / "page.js").read_text()),
        "library": Markup(chart_library().replace("</script", "<\\/script")),
    }
    return templates().get_template("page.html").render(parts, data=script_data(context))


def templates() -> Environment:
    """The templates of the lab's pages, with the filters that they use."""
    environment = Environment(loader=FileSystemLoader(PAGE), autoescape=True, undefined=StrictUndefined,
                              trim_blocks=True, lstrip_blocks=True)  # fmt: skip
    environment.filters["words"] = in_words
    environment.filters["cores"] = lambda number: f"{number} core{'' if number == 1 else 's'}"
    environment.filters["css"] = lambda text: text.replace("\\", "\\\\").replace("'", "\\'")  # inside a string of CSS
    return environment


def write_report(result: Result, path: Path) -> None:
    """OSError or ReportError if that is not possible."""
    text = make_report(result)
    write_whole(path, lambda file: file.write(text))


def save_report(result: Result, path: Path) -> bool:
    """False: there is no report, and the reader has been told why."""
    try:
        write_report(result, path)
        return True
    except ReportError as error:
        complain(f"no report: {error}")
    except OSError as error:
        complain(f"the report can't be written to {path}: {reason_of(error)}")
    return False
