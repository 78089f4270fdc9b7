import Glibc

/// Pieces of SVG text. Colours follow the reader's light or dark scheme, also when the file is shown as a picture.
enum SVG {
  private static let style = """
    text{font:13px system-ui,sans-serif;fill:#1f2328}.title{font-weight:600;font-size:15px}.bold{font-weight:600}
    .middle{text-anchor:middle}.end{text-anchor:end}.grid{stroke:#d0d7de;stroke-width:1}
    polyline{fill:none;stroke-width:1.8}.ours{stroke-width:3}
    .c0{stroke:#0969da;color:#0969da}.c1{stroke:#cf222e;color:#cf222e}.c2{stroke:#1a7f37;color:#1a7f37}
    .c3{stroke:#9a6700;color:#9a6700}.c4{stroke:#8250df;color:#8250df}.c5{stroke:#57606a;color:#57606a}
    .fill{fill:currentColor;stroke:none}.back{fill:#ffffff}.small{font-size:12px}.whisker{stroke-width:2.4;opacity:.6}
    .mark{stroke:#ffffff;stroke-width:1.2}
    @media(prefers-color-scheme:dark){text{fill:#e6edf3}.grid{stroke:#30363d}.back{fill:#0d1117}.mark{stroke:#0d1117}
    .c0{stroke:#58a6ff;color:#58a6ff}.c1{stroke:#ff7b72;color:#ff7b72}.c2{stroke:#3fb950;color:#3fb950}
    .c3{stroke:#d29922;color:#d29922}.c4{stroke:#bc8cff;color:#bc8cff}.c5{stroke:#8b949e;color:#8b949e}}
    """

  static func open(width: Double, height: Double, title: String) -> String {
    let box = "\(fixed(width, 0)) \(fixed(height, 0))"
    return #"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \#(box)" width="\#(fixed(width, 0))" role="img">"#
      + "<title>\(escaped(title))</title><style>\(style)</style>" + #"<rect class="back" width="100%" height="100%"/>"#
  }
  static func text(_ text: String, x: Double, y: Double, style: String) -> String {
    #"<text class="\#(style)" x="\#(fixed(x, 1))" y="\#(fixed(y, 1))">\#(escaped(text))</text>"#
  }
  static func line(_ x1: Double, _ y1: Double, _ x2: Double, _ y2: Double, style: String) -> String {
    #"<line class="\#(style)" x1="\#(fixed(x1, 1))" y1="\#(fixed(y1, 1))" x2="\#(fixed(x2, 1))" y2="\#(fixed(y2, 1))"/>"#
  }
  static func dot(_ x: Double, _ y: Double, radius: Double, style: String) -> String {
    #"<circle class="\#(style) fill" cx="\#(fixed(x, 1))" cy="\#(fixed(y, 1))" r="\#(fixed(radius, 1))"/>"#
  }
  static func colour(_ index: Int) -> String { "c\(index % 6)" }

  /// An axis label: no more digits than needed.
  static func number(_ value: Double) -> String {
    if abs(value) >= 1e6 { return fixed(value / 1e6, value.truncatingRemainder(dividingBy: 1e6) == 0 ? 0 : 1) + " M" }
    if abs(value) >= 10_000 { return fixed(value / 1000, 0) + " k" }
    for decimals in 0...4 {
      let text = fixed(value, decimals)
      if let shown = Double(text), abs(shown - value) <= abs(value) * 1e-6 { return text }
    }
    return fixed(value, 4)
  }
  static func escaped(_ text: String) -> String {
    text.reduce(into: "") { out, character in
      switch character {
      case "&": out += "&amp;"
      case "<": out += "&lt;"
      case ">": out += "&gt;"
      case "\"": out += "&quot;"
      default: out.append(character)
      }
    }
  }
  static func log10(_ value: Double) -> Double { Glibc.log10(value) }
  static func power(of base: Double, atMost value: Double) -> Double { pow(base, (log10(value) + 1e-9).rounded(.down)) }
}
