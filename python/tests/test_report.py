"""Runs become a page that works by itself, which a browser opens and clicks through."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

import tiergraph as tg
from tiergraph import report

pytest.importorskip("bokeh", reason="what draws reports")

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
QUIET += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
MOST = 5_000_000
"""Bytes of a page of 100,000 spans."""


def tiergraph(*arguments):
    command = [sys.executable, "-m", "tiergraph", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "web.tg"
    tg.generate("rmat", path, scale=14)
    return path


@pytest.fixture(scope="module")
def saved(graph):
    """Two runs as they were printed, with their timelines."""
    found = []
    for name in ("pagerank", "wcc"):
        run, trace = graph.with_name(f"{name}.json"), graph.with_name(f"{name}.trace")
        said = tiergraph(name, graph, "--json", "--ceiling", "--trace", trace)
        assert said.returncode == 0, said.stderr
        run.write_text(said.stdout)
        found.append((run, trace))
    return found


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium here (apt install chromium)")
    sync = pytest.importorskip("playwright.sync_api", reason="what drives the browser")
    with sync.sync_playwright() as started:
        try:
            opened = started.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        except sync.Error as error:
            pytest.skip(f"Chromium does not start here: {str(error).splitlines()[0]}")
        yield opened
        opened.close()


@pytest.fixture
def look(browser):
    """Opens a page in a window; tells what went wrong there, or was asked of the network."""

    def opened(path, **how):
        page = browser.new_context(**how).new_page()
        wrong = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.on(
            "request",
            lambda to: None if to.url.startswith(("file:", "data:")) else wrong.append(to.url),
        )
        page.goto(path.as_uri())
        page.wait_for_function("Bokeh.documents.length && Bokeh.documents.every(d => d.is_idle)")
        return page, wrong

    return opened


def span(page, name):
    """From where to where a figure's time goes."""
    found = f"Bokeh.documents.map(d => d.get_model_by_name('{name}')).find(Boolean)"
    return page.evaluate(f"(() => {{ const r = {found}.x_range; return [r.start, r.end]; }})()")


def test_a_browser_opens_it_and_clicks_through_it(saved, tmp_path, look):
    axe = pytest.importorskip("axe_core_python.sync_playwright", reason="what checks for access")
    path = tmp_path / "report.html"
    (first, trace), (second, other) = saved
    said = tiergraph("report", first, second, "--trace", trace, "--trace", other, "-o", path)
    assert said.returncode == 0, said.stderr
    page, wrong = look(path)
    heads = page.locator("h2").all_inner_texts()
    for title in (
        "Timeline: pagerank on web.tg",
        "Timeline: wcc on web.tg",
        "Bandwidth over time",
        "Where bytes were",
        "Residency",
        "Convergence",
        "Sizes of components",
        "Degrees",
        "All figures",
    ):
        assert title in heads, heads
    run = json.loads(first.read_text())
    assert f"{run['iterations']} iterations" in page.locator("main").inner_text()
    # Nearer, farther, and all of it.
    whole = span(page, "timeline-0")
    zoom = page.locator("[data-figure='timeline-0']")
    zoom.nth(0).click()
    near = span(page, "timeline-0")
    assert near[1] - near[0] == pytest.approx((whole[1] - whole[0]) / 2)
    zoom.nth(1).click()
    zoom.nth(1).click()
    assert span(page, "timeline-0") == pytest.approx(whole)
    zoom.nth(0).click()
    zoom.nth(2).click()
    assert span(page, "timeline-0") == pytest.approx(whole)
    # Light and dark.
    ground = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(ground)
    page.locator("#theme").click()
    assert page.evaluate(ground) != before
    for _ in range(2):
        found = axe.Axe().run(page)["violations"]
        assert not [rule for rule in found if rule["impact"] in ("serious", "critical")], found
        page.locator("#theme").click()
    page.get_by_role("link", name="Degrees").click()
    assert not wrong


def test_a_telephone_shows_it(saved, tmp_path, look):
    path = tmp_path / "report.html"
    report.write([report.read(*saved[0])], path)
    page, wrong = look(path, viewport={"width": 390, "height": 844}, is_mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator("canvas").count() > 0
    assert not wrong


def test_a_page_of_100_000_spans_is_small_and_opens(saved, tmp_path, look):
    random = np.random.default_rng(1)
    events = [{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "storage to host"}}]
    ends = np.zeros(40)
    for number, took in enumerate(random.exponential(100, 100_000)):
        lane = number % 40
        event = {"name": "read", "cat": "x", "ph": "X", "pid": 1, "tid": 1000 + lane}
        events.append(event | {"ts": ends[lane], "dur": took, "args": {"bytes": 1 << 20}})
        ends[lane] += took + 10
    trace = tmp_path / "big.trace"
    trace.write_text(json.dumps({"traceEvents": events}))
    path = tmp_path / "report.html"
    report.write([report.read(saved[0][0], trace)], path)
    assert path.stat().st_size < MOST
    page, wrong = look(path)
    assert "Bandwidth over time" in page.locator("h2").all_inner_texts()
    assert not wrong


def test_bandwidth_adds_up_to_what_was_read(saved):
    from tiergraph.report.figures import MIB, _rates

    run = report.read(*saved[0])
    assert run.spans.size.sum() == run.fields["bytes_read"]
    middles, rates = _rates(run.spans)
    assert (rates * (middles[1] - middles[0])).sum() * MIB == pytest.approx(run.spans.size.sum())


def test_every_algorithm_writes_one(graph, tmp_path):
    for name, *flags in (
        ("pagerank",),
        ("wcc",),
        ("bfs", "--source", "3"),
        ("sssp", "--source", "3"),
    ):
        path = tmp_path / f"{name}.html"
        said = tiergraph(name, graph, *flags, "--report", path)
        assert said.returncode == 0, said.stderr
        assert str(path) in said.stderr.replace("\n", "")
        text = path.read_text()
        assert f"Timeline: {name} on web.tg" in text
        assert "component_sizes" not in text
    assert not list(tmp_path.glob(".*"))


def test_a_training_run_has_its_epochs(tmp_path):
    epochs = [
        {
            "epoch": e,
            "loss": 1 / (e + 1),
            "accuracy": 0.5 + e / 10,
            "seconds_train": 1.0,
            "bytes_ssd": 5,
        }
        for e in range(3)
    ]
    run = {
        "graph": "g.tg",
        "epochs": epochs,
        "options": {"model": "sage"},
        "test": {"accuracy": 0.7},
    }
    file, path = tmp_path / "train.json", tmp_path / "report.html"
    file.write_text(json.dumps(run | {"notes": ["a <note>"]}))
    assert tiergraph("report", file, "-o", path).returncode == 0
    text = path.read_text()
    for shown in (
        "training, sage on g.tg",
        "Loss",
        "Accuracy",
        "Bytes of batches",
        "accuracy 0.7",
        "a &lt;note&gt;",
    ):
        assert shown in text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot read"),
        ("{", "a run (JSON)"),
        ("[]", "got list"),
        ("{}", "an empty object"),
        ('{"vertices": 3}', "got vertices"),
        ('{"algorithm": "x", "details": [{"seconds": 1}]}', "a number as `iterations`"),
        ('{"epochs": ["x"]}', "a number as `epoch`"),
    ],
)
def test_what_is_no_run_is_refused(tmp_path, text, said):
    file, path = tmp_path / "run.json", tmp_path / "report.html"
    if text is not None:
        file.write_text(text)
    refused = tiergraph("report", file, "-o", path)
    assert refused.returncode == 1
    assert said in refused.stderr
    assert "internal" not in refused.stderr
    assert not path.exists()


@pytest.mark.parametrize("text", ["{}", '{"traceEvents": [{"ph": "X"}]}', '{"traceEvents": 3}'])
def test_what_is_no_trace_is_refused(saved, tmp_path, text):
    trace = tmp_path / "t.json"
    trace.write_text(text)
    with pytest.raises(tg.FormatError, match=r"t\.json"):
        report.read(saved[0][0], trace)


def test_where_no_page_can_be_is_told_before_the_run(graph, saved, tmp_path):
    for path in (tmp_path, tmp_path / "missing" / "r.html"):
        refused = tiergraph("pagerank", graph, "--report", path)
        assert refused.returncode == 1
        assert "cannot write" in refused.stderr
    run = report.read(*saved[0])
    with pytest.raises(tg.InputError, match="1 to 8 runs"):
        report.write([run] * 9, tmp_path / "r.html")
    refused = tiergraph("report", saved[0][0], "--trace", "a", "--trace", "b")
    assert "a trace a run" in refused.stderr
