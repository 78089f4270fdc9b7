/// Small multiples: panels side by side with one scale for all, each with its finding as its title.
///
///     var page = PlotPage("Delay against missing audio", x: .init("mean delay, ms", range: 0...400), y: .init("missing, %", range: 0...10))
///     page.add("drive", finding: "43 ms less delay than NetEQ", curves: [.init("ours", [.init(47, 0.9)], marks: true)])
///     bench.save(page.svg, as: "jitter-networks", caption: "…")
public struct PlotPage {
  /// A point, with the ends of its interval if it has one.
  public struct Spot: Sendable {
    var x: Double
    var y: Double
    var low: Double?
    var high: Double?
    public init(_ x: Double, _ y: Double, low: Double? = nil, high: Double? = nil) {
      (self.x, self.y, self.low, self.high) = (x, y, low, high)
    }
  }
  /// Curves of one name have one colour in every panel. With `marks` each point is a large dot (an operating point). A limit is a
  /// grey line.
  public struct Curve: Sendable {
    var name: String
    var spots: [Spot]
    var marks: Bool
    var isLimit: Bool
    public init(_ name: String, _ spots: [Spot], marks: Bool = false, isLimit: Bool = false) {
      (self.name, self.spots, self.marks, self.isLimit) = (name, spots, marks, isLimit)
    }
  }
  private struct Panel {
    var title: String
    var finding: String
    var curves: [Curve]
  }

  private let title: String
  private let legend: String
  private let x: Plot.Axis
  private let y: Plot.Axis
  private var panels: [Panel] = []
  private static let columns = 3
  private static let (width, height) = (318.0, 262.0)
  private static let (left, right, top, bottom) = (46.0, 12.0, 46.0, 44.0)
  private static let (margin, head) = (14.0, 74.0)
  /// Width of a letter: text is not measured.
  private static let letterWidth = 7.0

  /// Both axes need a range. `legend` explains dots and lines, beside the names.
  public init(_ title: String, legend: String = "", x: Plot.Axis, y: Plot.Axis) {
    (self.title, self.legend, self.x, self.y) = (title, legend, x, y)
  }

  public mutating func add(_ title: String, finding: String, curves: [Curve]) {
    panels.append(Panel(title: title, finding: finding, curves: curves.filter { !$0.spots.isEmpty }))
  }

  /// Grey is reserved for limits.
  private var colours: [(name: String, style: String)] {
    var colours: [(name: String, style: String)] = []
    for curve in panels.flatMap(\.curves) where !colours.contains(where: { $0.name == curve.name }) {
      colours.append((curve.name, SVG.colour(curve.isLimit ? 5 : colours.count % 5)))
    }
    return colours
  }

  public var svg: String {
    let columns = min(Self.columns, max(1, panels.count))
    let rows = (panels.count + columns - 1) / columns
    let size = (width: Self.margin * 2 + Double(columns) * Self.width, height: Self.head + Double(rows) * Self.height + 4)
    var out = SVG.open(width: size.width, height: size.height, title: title)
    out += SVG.text(title, x: Self.margin + 6, y: 24, style: "title")
    var at = Self.margin + 12
    let colours = colours
    for (index, (name, style)) in colours.enumerated() {
      out += SVG.dot(at, 47, radius: 5, style: style)
      out += SVG.text(name, x: at + 10, y: 51, style: index == 0 ? "bold" : "")
      at += 34 + Double(name.count) * Self.letterWidth
    }
    out += SVG.text(legend, x: at, y: 51, style: "small")
    for (index, panel) in panels.enumerated() {
      let origin = (
        x: Self.margin + Double(index % columns) * Self.width, y: Self.head + Double(index / columns) * Self.height
      )
      out += draw(panel, at: origin, isLeftmost: index % columns == 0, colours)
    }
    return out + "</svg>\n"
  }

  private func draw(
    _ panel: Panel, at origin: (x: Double, y: Double), isLeftmost: Bool, _ colours: [(name: String, style: String)]
  ) -> String {
    let (from, to) = (origin.x + Self.left, origin.x + Self.width - Self.right)
    let (floor, ceiling) = (origin.y + Self.height - Self.bottom, origin.y + Self.top)
    let across = ScaledAxis(x, [], from: from, to: to)
    let upward = ScaledAxis(y, [], from: floor, to: ceiling)
    var out = SVG.text(panel.title, x: from, y: origin.y + 16, style: "bold")
    out += SVG.text(panel.finding, x: from, y: origin.y + 34, style: "small")
    for tick in across.ticks {
      out += SVG.line(across.position(tick), ceiling, across.position(tick), floor, style: "grid")
      out += SVG.text(SVG.number(tick), x: across.position(tick), y: floor + 15, style: "middle small")
    }
    for tick in upward.ticks {
      out += SVG.line(from, upward.position(tick), to, upward.position(tick), style: "grid")
      out += SVG.text(SVG.number(tick), x: from - 6, y: upward.position(tick) + 4, style: "end small")
    }
    out += SVG.text(x.label, x: (from + to) / 2, y: floor + 31, style: "middle small")
    if isLeftmost {
      let transform = "translate(\(fixed(origin.x + 8, 1)) \(fixed((floor + ceiling) / 2, 1))) rotate(-90)"
      out += #"<text class="middle small" transform="\#(transform)">\#(SVG.escaped(y.label))</text>"#
    }
    // Lines first, marks on top of them, and the first of all names topmost.
    let order = panel.curves.sorted { !$0.marks && $1.marks }
    for curve in order.filter({ !$0.marks }).reversed() + order.filter(\.marks).reversed() {
      let index = colours.firstIndex { $0.name == curve.name } ?? 0
      out += draw(curve, colours[index].style, isFirst: index == 0, across, upward)
    }
    return out
  }

  private func draw(_ curve: Curve, _ style: String, isFirst: Bool, _ across: ScaledAxis, _ upward: ScaledAxis) -> String {
    let positions = curve.spots.map { (across.position($0.x), upward.position($0.y)) }
    var out = ""
    if positions.count > 1 {
      let path = positions.map { "\(fixed($0.0, 1)),\(fixed($0.1, 1))" }.joined(separator: " ")
      out += #"<polyline class="\#(style)" points="\#(path)"/>"#
    }
    for (spot, position) in zip(curve.spots, positions) {
      if let low = spot.low, let high = spot.high {
        out += SVG.line(position.0, upward.position(low), position.0, upward.position(high), style: style + " whisker")
      }
      // A dot must not hide its interval.
      let radius = (isFirst ? 5.5 : 5) - (spot.low == nil ? 0 : 2)
      if curve.marks { out += SVG.dot(position.0, position.1, radius: radius, style: style + " mark") }
    }
    if !curve.marks, !curve.isLimit {
      for position in positions { out += SVG.dot(position.0, position.1, radius: 2.2, style: style) }
    }
    return out
  }
}
