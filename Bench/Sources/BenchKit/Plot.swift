/// A diagram of lines and points as SVG, readable on light and dark backgrounds, with labelled axes.
///
///     var plot = Plot("late packets against delay", x: .init("mean delay, ms"), y: .init("late, %", scale: .logarithmic))
///     plot.add("ours", [(40, 1.2), (60, 0.3)])
///     bench.save(plot.svg, as: "jitter-tradeoff", caption: "…")
public struct Plot {
  public enum Scale: Sendable { case linear, logarithmic }
  public struct Axis: Sendable {
    var label: String
    var scale: Scale
    var range: ClosedRange<Double>?
    /// The label names the unit. Without a range the data sets it; a logarithmic axis draws lower values on its edge.
    public init(_ label: String, scale: Scale = .linear, range: ClosedRange<Double>? = nil) {
      (self.label, self.scale, self.range) = (label, scale, range)
    }
  }
  struct Series {
    var name: String
    var points: [(x: Double, y: Double)]
    var hasLine: Bool
    var isOurs: Bool
  }

  private let title: String
  private let x: Axis
  private let y: Axis
  private var series: [Series] = []
  private static let (width, height) = (760.0, 420.0)
  private static let (left, right, top, bottom) = (70.0, 210.0, 40.0, 54.0)

  public init(_ title: String, x: Axis, y: Axis) { (self.title, self.x, self.y) = (title, x, y) }

  /// One named curve; a single point is drawn as a mark. A curve named "ours…" stands out.
  public mutating func add(_ name: String, _ points: [(Double, Double)], line: Bool = true) {
    series.append(
      Series(
        name: name, points: points.map { (x: $0.0, y: $0.1) }, hasLine: line && points.count > 1, isOurs: name.hasPrefix("ours")))
  }

  public var isEmpty: Bool { series.isEmpty }

  public var svg: String {
    let across = ScaledAxis(x, series.flatMap { $0.points.map(\.x) }, from: Self.left, to: Self.width - Self.right)
    let upward = ScaledAxis(y, series.flatMap { $0.points.map(\.y) }, from: Self.height - Self.bottom, to: Self.top)
    var out = SVG.open(width: Self.width, height: Self.height, title: title)
    out += SVG.text(title, x: Self.left, y: 22, style: "title")
    for tick in across.ticks {
      let at = across.position(tick)
      out += SVG.line(at, Self.top, at, Self.height - Self.bottom, style: "grid")
      out += SVG.text(SVG.number(tick), x: at, y: Self.height - Self.bottom + 18, style: "middle")
    }
    for tick in upward.ticks {
      let at = upward.position(tick)
      out += SVG.line(Self.left, at, Self.width - Self.right, at, style: "grid")
      out += SVG.text(SVG.number(tick), x: Self.left - 8, y: at + 4, style: "end")
    }
    out += SVG.text(x.label, x: (Self.left + Self.width - Self.right) / 2, y: Self.height - 12, style: "middle")
    let middle = (Self.top + Self.height - Self.bottom) / 2
    out += #"<text class="middle" transform="translate(18 \#(fixed(middle, 1))) rotate(-90)">\#(SVG.escaped(y.label))</text>"#
    // The first curves are drawn last, on top.
    for (index, series) in series.enumerated().reversed() { out += draw(series, index, across, upward) }
    return out + "</svg>\n"
  }

  private func draw(_ series: Series, _ index: Int, _ across: ScaledAxis, _ upward: ScaledAxis) -> String {
    let style = SVG.colour(index)
    let spots = series.points.map { (across.position($0.x), upward.position($0.y)) }
    var out = ""
    if series.hasLine {
      let path = spots.map { "\(fixed($0.0, 1)),\(fixed($0.1, 1))" }.joined(separator: " ")
      out += #"<polyline class="\#(style)\#(series.isOurs ? " ours" : "")" points="\#(path)"/>"#
    }
    if !series.hasLine || spots.count < 40 {
      for spot in spots { out += SVG.dot(spot.0, spot.1, radius: series.isOurs ? 4.5 : 3.5, style: style) }
    }
    let line = Self.top + 10 + Double(index) * 20
    out += SVG.dot(Self.width - Self.right + 18, line, radius: series.isOurs ? 5 : 4, style: style)
    return out + SVG.text(series.name, x: Self.width - Self.right + 30, y: line + 4, style: series.isOurs ? "bold" : "")
  }
}

/// Horizontal bars, one per name, for the results of implementations. A logarithmic scale has dots, as a bar's length has no
/// meaning there. Bars named "ours…" are highlighted, limits ("limit…", "bare…") are grey.
public struct BarPlot {
  private let title: String
  private let label: String
  private let scale: Plot.Scale
  private var bars: [(name: String, value: Double)] = []
  private static let width = 760.0
  /// The width of a bold letter; names are not measured.
  private static let letterWidth = 7.4

  public init(_ title: String, label: String, scale: Plot.Scale = .linear) {
    (self.title, self.label, self.scale) = (title, label, scale)
  }
  public mutating func add(_ name: String, _ value: Double) { bars.append((name, value)) }

  public var svg: String {
    let height = 84 + Double(bars.count) * 28
    let left = max(120, 30 + Self.letterWidth * Double(bars.map(\.name.count).max() ?? 0))
    let right = Self.width - 90
    let axis = ScaledAxis(
      Plot.Axis(label, scale: scale), bars.map(\.value) + (scale == .linear ? [0] : []), from: left, to: right)
    var out = SVG.open(width: Self.width, height: height, title: title)
    out += SVG.text(title, x: 20, y: 22, style: "title")
    for tick in axis.ticks {
      let at = axis.position(tick)
      out += SVG.line(at, 36, at, height - 44, style: "grid")
      out += SVG.text(SVG.number(tick), x: at, y: height - 26, style: "middle")
    }
    out += SVG.text(label, x: (left + right) / 2, y: height - 8, style: "middle")
    for (index, bar) in bars.enumerated() {
      let y = 42 + Double(index) * 28
      let length = max(1, axis.position(bar.value) - left)
      out += SVG.text(bar.name, x: left - 10, y: y + 14, style: bar.name.hasPrefix("ours") ? "end bold" : "end")
      if scale == .logarithmic {
        out += SVG.dot(left + length, y + 9.5, radius: 6, style: Self.style(bar.name))
      } else {
        out +=
          #"<rect class="\#(Self.style(bar.name)) fill" x="\#(fixed(left, 1))" y="\#(fixed(y, 1))" width="\#(fixed(length, 1))" "#
          + #"height="19" rx="3"/>"#
      }
      out += SVG.text(Self.value(bar.value), x: left + length + (scale == .logarithmic ? 11 : 6), y: y + 14, style: "")
    }
    return out + "</svg>\n"
  }

  private static func style(_ name: String) -> String {
    SVG.colour(name.hasPrefix("ours") ? 0 : name.hasPrefix("limit") || name.hasPrefix("bare") ? 5 : 3)
  }

  /// A bar shows a value with about three digits.
  private static func value(_ value: Double) -> String {
    value >= 1e6
      ? fixed(value / 1e6, 1) + " M"
      : value >= 100_000 ? fixed(value / 1_000, 0) + " k" : value >= 10 ? fixed(value, 0) : BenchTable.number(value)
  }
}

/// Values to positions, with round ticks.
struct ScaledAxis {
  private let scale: Plot.Scale
  private let low: Double
  private let high: Double
  private let from: Double
  private let to: Double
  private(set) var ticks: [Double] = []

  init(_ axis: Plot.Axis, _ values: [Double], from: Double, to: Double) {
    (scale, self.from, self.to) = (axis.scale, from, to)
    var low = axis.range?.lowerBound ?? values.min() ?? 0
    var high = axis.range?.upperBound ?? values.max() ?? 1
    if axis.scale == .logarithmic {
      low = max(low, 1e-6)
      high = max(high, low * 1.001)
      var decade = SVG.power(of: 10, atMost: low)
      if axis.range == nil { low = decade }
      // An axis of few decades also has their halves and fifths.
      let steps = high / low < 300 ? [1.0, 2, 5] : [1]
      while decade <= high * 1.0001 {
        ticks += steps.map { decade * $0 }.filter { $0 >= low * 0.9999 && $0 <= high * 1.0001 }
        decade *= 10
      }
      if axis.range == nil, ticks.count < 2 || ticks[ticks.count - 1] < high { (high, ticks) = (decade, ticks + [decade]) }
    } else {
      let span = max(high - low, 1e-9)
      var step = SVG.power(of: 10, atMost: span)
      if span / step > 5 { step *= 2 }
      if span / step < 2.5 { step /= 2 }
      if axis.range == nil {
        low = (low / step).rounded(.down) * step
        high = (high / step).rounded(.up) * step
      }
      ticks = (0...40).map { (low / step).rounded(.up) * step + Double($0) * step }.filter { $0 <= high + step * 0.001 }
    }
    (self.low, self.high) = (low, max(high, low + 1e-9))
  }

  func position(_ value: Double) -> Double {
    let share: Double
    switch scale {
    case .linear: share = (value - low) / (high - low)
    case .logarithmic: share = SVG.log10(max(value, low) / low) / SVG.log10(high / low)
    }
    return from + min(1, max(0, share)) * (to - from)
  }
}
