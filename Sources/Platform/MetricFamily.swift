/// One metric as its owner declares it: name, help, type, labels and how to read it. Owners list theirs in their
/// `Metrics.swift`; `Telemetry` only renders.
public struct MetricFamily: Sendable {
  public enum Kind: String, Sendable { case counter, gauge, histogram }

  /// `[a-z_:][a-z0-9_:]*`; counters end in `_total`, and the name contains the unit (`_seconds`, `_bytes`).
  public let name: String
  public let help: String
  public let kind: Kind
  /// Fixed at declaration; every sample has as many label values.
  public let labelNames: [String]
  /// Reads all samples now. Called by the rendering thread: it must not wait for another thread.
  public let snapshot: @Sendable () -> [MetricSample]

  public init(
    name: String, help: String, kind: Kind, labelNames: [String] = [], snapshot: @escaping @Sendable () -> [MetricSample]
  ) {
    precondition(Self.isName(name), "not a metric name: \(name)")
    precondition(labelNames.allSatisfy { Self.isName($0) && !$0.contains(":") }, "not a label name in \(name)")
    precondition(kind != .counter || name.hasSuffix("_total"), "a counter's name ends in _total: \(name)")
    (self.name, self.help, self.kind, self.labelNames, self.snapshot) = (name, help, kind, labelNames, snapshot)
  }

  private static func isName(_ text: String) -> Bool {
    guard let first = text.utf8.first, !(48...57).contains(first) else { return false }
    let others = Set("_:0123456789".utf8)
    return text.utf8.allSatisfy { (97...122).contains($0) || (65...90).contains($0) || others.contains($0) }
  }
}

/// One value with its label values, in the order of the family's `labelNames`.
public struct MetricSample: Sendable {
  public enum Value: Sendable {
    case integer(Int64)
    case number(Double)
    case histogram(HistogramSnapshot)
  }
  public let labels: [String]
  public let value: Value

  public init(_ labels: [String], _ value: Value) { (self.labels, self.value) = (labels, value) }
}

extension MetricFamily {
  public static func counter(_ name: String, help: String, _ counter: Counter) -> MetricFamily {
    MetricFamily(name: name, help: help, kind: .counter) { [MetricSample([], .integer(Int64(clamping: counter.value)))] }
  }
  public static func gauge(_ name: String, help: String, _ gauge: Gauge) -> MetricFamily {
    MetricFamily(name: name, help: help, kind: .gauge) { [MetricSample([], .integer(gauge.value))] }
  }
  public static func gauge(_ name: String, help: String, read: @escaping @Sendable () -> Int64) -> MetricFamily {
    MetricFamily(name: name, help: help, kind: .gauge) { [MetricSample([], .integer(read()))] }
  }
  public static func histogram(_ name: String, help: String, _ histogram: Histogram) -> MetricFamily {
    MetricFamily(name: name, help: help, kind: .histogram) { [MetricSample([], .histogram(histogram.snapshot))] }
  }
  public static func counters<Label>(_ name: String, help: String, label: String, _ counters: LabelledCounters<Label>)
    -> MetricFamily
  {
    MetricFamily(name: name, help: help, kind: .counter, labelNames: [label]) { counters.samples }
  }
  public static func counters(_ name: String, help: String, _ table: CounterTable) -> MetricFamily {
    MetricFamily(name: name, help: help, kind: .counter, labelNames: table.labelNames) { table.samples }
  }
  public static func gauges<Label>(_ name: String, help: String, label: String, _ gauges: LabelledGauges<Label>)
    -> MetricFamily
  {
    MetricFamily(name: name, help: help, kind: .gauge, labelNames: [label]) { gauges.samples }
  }
}
