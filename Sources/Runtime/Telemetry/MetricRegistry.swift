import Synchronization
import TrunklinePlatform

/// All metrics of the process, collected from their owners and rendered in Prometheus' text format 0.0.4.
///
///     let registry = MetricRegistry()
///     registry.register(sipTransport.metrics)
///     let page = registry.render()
///
/// Any thread. Rendering calls each family's snapshot: about 1 µs per sample, nothing on the paths that record.
public final class MetricRegistry: Sendable {
  /// For the HTTP header.
  public static let contentType = "text/plain; version=0.0.4; charset=utf-8"

  private let families = Mutex<[MetricFamily]>([])

  public init() {}

  /// Adds an owner's families. A name may be declared once in the process: two owners with one name are a fault of ours.
  public func register(_ new: [MetricFamily]) {
    families.withLock { families in
      for family in new {
        precondition(families.count < Limits.metricFamilies, "too many metrics")
        precondition(!families.contains { $0.name == family.name }, "the metric \(family.name) is declared twice")
        families.append(family)
      }
    }
  }

  /// All families by name.
  public var declared: [MetricFamily] { families.withLock { $0 }.sorted { $0.name < $1.name } }

  /// The page, in UTF-8.
  public func render() -> [UInt8] {
    var out = ""
    for family in declared { TextExposition.append(family, to: &out) }
    return Array(out.utf8)
  }
}

/// The lines of one family (https://prometheus.io/docs/instrumenting/exposition_formats/).
enum TextExposition {
  static func append(_ family: MetricFamily, to out: inout String) {
    out += "# HELP \(family.name) \(escaped(family.help, quotes: false))\n# TYPE \(family.name) \(family.kind.rawValue)\n"
    for sample in family.snapshot().prefix(Limits.samplesPerFamily) {
      let labels = zip(family.labelNames, sample.labels).map { "\($0)=\"\(escaped($1, quotes: true))\"" }
      switch sample.value {
      case .integer(let value): line(family.name, labels: labels, value: String(value), &out)
      case .number(let value): line(family.name, labels: labels, value: text(value), &out)
      case .histogram(let histogram): append(histogram, name: family.name, labels: labels, &out)
      }
    }
  }

  private static func append(_ histogram: HistogramSnapshot, name: String, labels: [String], _ out: inout String) {
    var total: UInt64 = 0
    for (index, count) in histogram.counts.enumerated() {
      total &+= count
      let bound = histogram.bounds.indices.contains(index) ? text(histogram.bounds[index]) : "+Inf"
      line(name + "_bucket", labels: labels + ["le=\"\(bound)\""], value: String(total), &out)
    }
    line(name + "_sum", labels: labels, value: text(histogram.sum), &out)
    line(name + "_count", labels: labels, value: String(total), &out)
  }

  private static func line(_ name: String, labels: [String], value: String, _ out: inout String) {
    out += labels.isEmpty ? "\(name) \(value)\n" : "\(name){\(labels.joined(separator: ","))} \(value)\n"
  }

  private static func text(_ value: Double) -> String {
    if value.isNaN { return "NaN" }
    if value.isInfinite { return value > 0 ? "+Inf" : "-Inf" }
    return "\(value)"
  }

  private static func escaped(_ text: String, quotes: Bool) -> String {
    var out = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\\": out += "\\\\"
      case "\n": out += "\\n"
      case "\"" where quotes: out += "\\\""
      default: out.unicodeScalars.append(scalar)
      }
    }
    return out
  }
}
