"""Looks of the web phone that a person sets in the browser or the system, for phone_acts.py: zoom, larger texts, forced colours, less motion."""
import os

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "page_faults.js"), encoding="utf-8") as file:
    FAULTS = file.read()
STATES = ["idle", "ringing", "connected", "keypad", "waiting", "two-calls", "merged", "settings-in-call", "gateway-gone-in-call", "emergency"]


def zoomed_to_200_percent(person):
    """A window of 1280 × 800 has 640 × 400 pixels then."""
    for state in STATES:
        person.opens(state, 640, 400)
        person.faults += [f"{state}: {fault}" for fault in person.js(FAULTS)]


def texts_at_200_percent(person):
    for state in STATES:
        person.opens(state, 640, 800)
        person.js("document.documentElement.style.fontSize = '200%'")
        person.expects(person.js("getComputedStyle(document.getElementById('status')).fontSize") != "14px", f"{state}: the texts do not grow")
        person.expects(person.js("parseFloat(getComputedStyle(document.body).fontSize)") == 32, f"{state}: the page's texts do not grow")
        person.faults += [f"{state}: {fault}" for fault in person.js(FAULTS)]


# A control is told from what is around it by an edge, since forced colours leave out backgrounds.
EDGES = """[...document.querySelectorAll("button, select, input:not([type=range])")].filter((e) => e.checkVisibility() && !e.matches(".plain, .bare, :disabled"))
  .filter((e) => { const { borderTopWidth, borderTopColor, backgroundColor } = getComputedStyle(e); return borderTopWidth === "0px" || borderTopColor === getComputedStyle(e.parentElement).backgroundColor; })
  .map((e) => `${e.id}: no edge in forced colours`)"""


def forced_colours(person):
    for state in STATES:
        person.opens(state)
        for scheme in ("light", "dark"):
            person.driver.media(forced_colors="active", prefers_color_scheme=scheme)
            person.expects(person.js("matchMedia('(forced-colors: active)').matches"), "the browser does not force colours")
            person.faults += [f"{state}, {scheme}: {fault}" for fault in person.js(EDGES) + person.js(FAULTS)]
        person.driver.media()


def less_motion(person):
    person.driver.media(prefers_reduced_motion="no-preference")
    person.opens("ringing")
    person.sees("document.getAnimations().length > 0", "a call that rings moves")
    person.driver.media(prefers_reduced_motion="reduce")
    person.sees("document.getAnimations().length === 0", "nothing moves for who wants less motion")
    person.driver.media()


for act in (zoomed_to_200_percent, texts_at_200_percent, forced_colours, less_motion):
    act.isChromiumOnly = True

ACTS = [zoomed_to_200_percent, texts_at_200_percent, forced_colours, less_motion]
