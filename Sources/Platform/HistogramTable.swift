import Synchronization

/// A histogram by one label whose values are known only at run time (trunk names), at most `limit` of them; further values are
/// recorded under `other`. Recording takes a lock for the look-up.
public final class HistogramTable: Sendable {
  public let labelName: String
  private let bounds: [Double]
  private let limit: Int
  private let histograms = Mutex<[String: Histogram]>([:])
  private let overflow: Histogram

  public init(labelName: String, bounds: [Double], limit: Int) {
    (self.labelName, self.bounds, self.limit) = (labelName, bounds, limit)
    overflow = Histogram(bounds: bounds)
  }

  public func record(_ value: Double, _ label: String) { histogram(label).record(value) }

  private func histogram(_ label: String) -> Histogram {
    histograms.withLock { table in
      if let histogram = table[label] { return histogram }
      guard table.count < limit else { return overflow }
      let histogram = Histogram(bounds: bounds)
      table[label] = histogram
      return histogram
    }
  }

  /// As `CounterTable.fold`: moves the values of removed labels to `removed`.
  public func fold(where isGone: (String) -> Bool) {
    histograms.withLock { table in
      for (label, histogram) in table where label != "removed" && isGone(label) {
        table[label] = nil
        let sum = table["removed"] ?? Histogram(bounds: bounds)
        sum.add(histogram.snapshot)
        table["removed"] = sum
      }
    }
  }

  var samples: [MetricSample] {
    var out = histograms.withLock { $0.map { ($0.key, $0.value.snapshot) } }.sorted { $0.0 < $1.0 }
    let rest = overflow.snapshot
    if rest.total > 0 { out.append(("other", rest)) }
    return out.map { MetricSample([$0.0], .histogram($0.1)) }
  }
}

extension MetricFamily {
  public static func histograms(_ name: String, help: String, _ table: HistogramTable) -> MetricFamily {
    MetricFamily(name: name, help: help, kind: .histogram, labelNames: [table.labelName]) { table.samples }
  }
}
