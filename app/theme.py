"""The colours and CSS of the dashboard, where Streamlit's own theme has no setting."""

from __future__ import annotations

PRIVATE = {"light": "#0F766E", "dark": "#2DD4BF"}
LEAKING = {"light": "#C2410C", "dark": "#FB923C"}
WEAK = {"light": "#92400E", "dark": "#FBBF24"}
INK = {"light": "#0F172A", "dark": "#E2E8F0"}
PAPER = {"light": "#FFFFFF", "dark": "#0B1220"}
FAINT = {"light": "#64748B", "dark": "#94A3B8"}
LINE = {"light": "#E2E8F0", "dark": "#1E293B"}
# From little to much, away from the background. They differ in brightness, so no colour vision is needed.
SHADES = {
    "light": ("#E9EFF8", "#A8BEDD", "#5F82B4", "#27477C", "#0B1B3A"),
    "dark": ("#1B2A47", "#355388", "#6590CC", "#AECBF1", "#F4F8FF"),
}
# The colours of the families of methods. None is teal or vermilion, which mean a proven promise and leaking.
# The families themselves declare the names of their colours; a test compares.
FAMILIES = {
    "grey": ("#6B7280", "#A3ADBD"),
    "blue": ("#0062A3", "#4DA3E0"),
    "sky": ("#1E93C9", "#8AD0F5"),
    "purple": ("#7E57A8", "#B99BE0"),
    "yellow": ("#A07C00", "#E3C23B"),
    "ink": ("#0F172A", "#E2E8F0"),
}
# The colour of each method, in the order of the symbols that tell methods of one colour apart.
METHODS = {
    "fedavg": "grey", "fedprox": "grey", "scaffold": "grey",
    "udp-fedavg": "blue", "fedceo": "blue", "fedceo-released": "blue",
    "dp-fedavg": "sky", "dp-fedprox": "sky",
    "ppsgd": "purple", "centaur": "purple",
    "feddm": "yellow", "dsc": "yellow", "fedlap": "yellow", "fedlap-dp": "yellow", "psg": "yellow",
    "fedsgd": "ink",
}  # fmt: skip
FURTHER = (("#B0417E", "#EFA3CC"), ("#8A5A2B", "#D6A878"))  # of lines that are no method; grey is the baseline
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "star", "triangle-down", "pentagon", "hexagon")

CSS = """
<style>
/* light-dark() is resolved where a variable is used; a dialog is outside the element with the theme */
[role="dialog"] { color-scheme: light dark; }
/* each style is a message of its own: what must not move is shown when these have arrived, see stop_slider.py */
:root { --styled-theme: visible; }
:root { --private: light-dark(#0F766E, #2DD4BF); --leaking: light-dark(#C2410C, #FB923C);
  --ink: light-dark(#0F172A, #E2E8F0); --control: light-dark(#334155, #CBD5E1);
  --weak: light-dark(#92400E, #FBBF24); --faint: light-dark(#55637A, #94A3B8); --hair: light-dark(#E2E8F0, #1E293B);
  --family-grey: light-dark(#6B7280, #A3ADBD); --family-blue: light-dark(#0062A3, #4DA3E0);
  --family-sky: light-dark(#1E93C9, #8AD0F5); --family-purple: light-dark(#7E57A8, #B99BE0);
  --family-yellow: light-dark(#A07C00, #E3C23B); --family-ink: light-dark(#0F172A, #E2E8F0); }
.block-container { padding-top: 4.2rem; padding-bottom: 3rem; max-width: 1500px; }
@media (max-width: 700px) { .block-container { padding-top: 3.6rem; padding-bottom: 2rem; } }
.ll-save { padding: 0 !important; }
.ll-title { padding: 0; margin: .6rem 0 0; }
h1.ll-title { font-size: 1.5rem; } h2.ll-title { font-size: 1rem; }
.ll-private { color: var(--private); } .ll-leaking { color: var(--leaking); } .ll-faint { color: var(--faint); }
.ll-weak { color: var(--weak); }
.ll-badge { display: inline-block; border: 1px solid currentColor; border-radius: 99px; padding: .05rem .7rem;
  font-size: .9rem; font-weight: 600; }
.ll-views details { border-top: 1px solid var(--hair); padding: .35rem 0; }
.ll-views summary { cursor: pointer; font-variant-numeric: tabular-nums; }
.ll-views p { margin: .25rem 0 .1rem 1rem; font-size: .9rem; color: var(--faint); }
button[kind="primary"]:not(:disabled) *, [data-testid="stMultiSelect"] [data-tag] * {
  color: light-dark(#FFFFFF, #0B1220); }
.ll-problem { border-left: 3px solid var(--leaking); padding: .1rem 0 .1rem .6rem; font-size: .92rem; margin: .2rem 0; }
.ll-note { border-left: 3px solid var(--hair); padding: .1rem 0 .1rem .6rem; font-size: .92rem; margin: .2rem 0; }
.ll-why { font-size: .92rem; margin: 0; }
.ll-lead { font-size: 1.05rem; margin: .3rem 0; }
.ll-save { list-style: none; margin: .3rem 0; } .ll-save li { margin: .2rem 0; }
.ll-save button { border: 1px solid var(--faint); border-radius: 4px; background: none; color: inherit;
  padding: .1rem .6rem; cursor: pointer; }
[data-testid="stPageLink-NavLink"]:focus-visible, [data-testid="stLinkButton"] a:focus-visible {
  outline: 2px solid var(--ink) !important; outline-offset: 2px; box-shadow: none; }
[data-stale="true"], [data-testid="stExpander"] summary { opacity: 1 !important; }
[class*="-protection"] .stMarkdownColoredText { color: var(--faint) !important; }
@media (max-width: 700px) { [class*="-protection"] .stMarkdownColoredText { display: none; } }
@media (prefers-reduced-motion: reduce) { * { animation: none !important; transition: none !important; } }
</style>
"""


def colour(method: str, dark: bool = False) -> str:
    """The colour of a method, which is that of its family. A method from another package is ink."""
    return FAMILIES[METHODS.get(method, "ink")][dark]


def baseline(dark: bool = False) -> str:
    """The colour of runs without protection. It is no verdict: whether they leak, an attack shows."""
    return FAMILIES["grey"][dark]


def series(place: int, dark: bool) -> str:
    """The colour of a line that is no method, by its place among such lines."""
    hues = [*(FAMILIES[name] for name in ("blue", "yellow", "purple", "sky", "ink")), *FURTHER]
    return hues[place % len(hues)][dark]


def symbol(method: str) -> str:
    """The symbol that tells a method apart from the others of its colour."""
    colour_name = METHODS.get(method, "ink")
    same_colour = [name for name, own in METHODS.items() if own == colour_name]
    place = same_colour.index(method) if method in same_colour else len(same_colour)
    return SYMBOLS[place % len(SYMBOLS)]


def shade(share: float, dark: bool) -> str:
    """The colour at this share of the scale `SHADES`, from 0 to 1."""
    scale = SHADES["dark" if dark else "light"]
    at = min(max(share, 0.0), 1.0) * (len(scale) - 1)
    low = min(int(at), len(scale) - 2)
    mixed = ""
    for place in (1, 3, 5):  # red, green and blue in #RRGGBB
        start = int(scale[low][place : place + 2], 16)
        end = int(scale[low + 1][place : place + 2], 16)
        mixed += f"{round(start + (end - start) * (at - low)):02X}"
    return f"#{mixed}"
