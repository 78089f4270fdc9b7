"""axe-core (Deque) in a page, by the DevTools protocol: what it finds against WCAG and its own best practices.

    from axe import violations
    violations(page)            ["axe color-contrast: #status > span", …]
"""
import importlib.util, os


def source():
    # the wheel has axe.min.js; what of it drives a browser, and needs playwright, is left alone
    package = importlib.util.find_spec("axe_playwright_python")
    if not package:
        raise SystemExit("axe-core is missing: run Scripts/install test")
    with open(os.path.join(package.submodule_search_locations[0], "axe.min.js"), encoding="utf-8") as file:
        return file.read()


SOURCE = source()
RUN = """
(async () => {
  const found = await axe.run(document, { resultTypes: ["violations"], rules: { "color-contrast": { enabled: %s } } });
  return found.violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => `axe ${id}: ${target.join(" ")}`));
})()
"""


def violations(page, contrast=True):
    """`contrast` is more than half of its time, and says the same at each width of a colour scheme."""
    if not page.evaluate("!!globalThis.axe"):
        page.evaluate(SOURCE + "\n; true")
    return page.evaluate(RUN % ("true" if contrast else "false"))
