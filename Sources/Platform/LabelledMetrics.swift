import Synchronization

/// A label whose values are the cases of an enum: all samples exist from the start, at zero.
public typealias MetricLabel = CaseIterable & Hashable & RawRepresentable & Sendable

/// A counter per case of an enum, such as drops by reason. Recording: a look-up and an atomic add.
///
///     enum Drop: String, CaseIterable, Sendable { case stranger, malformed }
///     let drops = LabelledCounters<Drop>()
///     drops[.stranger].increment()
public final class LabelledCounters<Label: MetricLabel>: Sendable where Label.RawValue == String {
  private let counters: [Label: Counter]

  public init() { counters = Dictionary(uniqueKeysWithValues: Label.allCases.map { ($0, Counter()) }) }

  public subscript(_ label: Label) -> Counter {
    guard let counter = counters[label] else { preconditionFailure("a case outside allCases") }
    return counter
  }

  var samples: [MetricSample] { Label.allCases.map { MetricSample([$0.rawValue], .integer(Int64(clamping: self[$0].value))) } }
}

/// A gauge per case of an enum.
public final class LabelledGauges<Label: MetricLabel>: Sendable where Label.RawValue == String {
  private let gauges: [Label: Gauge]

  public init() { gauges = Dictionary(uniqueKeysWithValues: Label.allCases.map { ($0, Gauge()) }) }

  public subscript(_ label: Label) -> Gauge {
    guard let gauge = gauges[label] else { preconditionFailure("a case outside allCases") }
    return gauge
  }

  var samples: [MetricSample] { Label.allCases.map { MetricSample([$0.rawValue], .integer(self[$0].value)) } }
}

/// Counters by label values known only at run time (trunk names, SIP codes), at most `limit` sets (512): further ones are counted
/// under `other` in every label. Looking a counter up locks; a kept counter records lock-free.
public final class CounterTable: Sendable {
  public let labelNames: [String]
  private let limit: Int
  private let counters = Mutex<[[String]: Counter]>([:])
  private let overflow = Counter()

  public init(labelNames: [String], limit: Int? = nil) {
    (self.labelNames, self.limit) = (labelNames, limit ?? Limits.labelSets)
  }

  /// The counter of these label values, created at its first use.
  public func counter(_ labels: String...) -> Counter { counter(labels) }

  public func counter(_ labels: [String]) -> Counter {
    precondition(labels.count == labelNames.count)
    return counters.withLock { table in
      if let counter = table[labels] { return counter }
      guard table.count < limit else { return overflow }
      let counter = Counter()
      table[labels] = counter
      return counter
    }
  }

  /// Adds the counts of removed objects, such as a trunk that left the configuration, to `removed` in that label: sums never
  /// fall.
  public func fold(_ label: String, where isGone: (String) -> Bool) {
    guard let index = labelNames.firstIndex(of: label) else { return }
    counters.withLock { table in
      for (labels, counter) in table where labels[index] != "removed" && isGone(labels[index]) {
        table[labels] = nil
        var rest = labels
        rest[index] = "removed"
        let sum = table[rest] ?? Counter()
        sum.increment(by: counter.value)
        table[rest] = sum
      }
    }
  }

  var samples: [MetricSample] {
    var out = counters.withLock { $0.map { ($0.key, $0.value.value) } }.sorted { $0.0.lexicographicallyPrecedes($1.0) }
    if overflow.value > 0 { out.append((labelNames.map { _ in "other" }, overflow.value)) }
    return out.map { MetricSample($0.0, .integer(Int64(clamping: $0.1))) }
  }
}
