import CMallocCount
import Glibc

/// CPU time of the calling thread in nanoseconds.
public func cpuNanoseconds() -> UInt64 {
  var time = timespec()
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
  return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// One row of a bench: what one operation costs.
public struct Measurement: Sendable {
  public var name: String
  public var operations: Int
  public var nanoseconds: Double
  public var mallocs: UInt64
  /// Folded over what the operations produced: the same on every machine, or the code changed its results.
  public var hash: UInt64
  /// Row is about cost only; its allocations are no failure.
  public var mayAllocate = false

  public var mallocsPerOperation: Double { Double(mallocs) / Double(max(1, operations)) }

  /// Runs `operations` once to warm up and three times measured; takes the quickest run and the fewest allocations of one run.
  public static func run(_ name: String, operations: Int, mayAllocate: Bool = false, body: (Int) -> UInt64) -> Measurement {
    var hash = ResultHash()
    for index in 0..<operations { hash.add(body(index)) }
    var best = Double.infinity
    var fewest = UInt64.max
    for _ in 0..<3 {
      let allocated = malloc_count()
      let start = cpuNanoseconds()
      var sink: UInt64 = 0
      for index in 0..<operations { sink &+= body(index) }
      let spent = Double(cpuNanoseconds() - start)
      fewest = min(fewest, malloc_count() - allocated)
      best = min(best, spent + (sink == 1 ? 0.001 : 0))
    }
    return Measurement(
      name: name, operations: operations, nanoseconds: best / Double(max(1, operations)), mallocs: fewest, hash: hash.value,
      mayAllocate: mayAllocate)
  }
}

/// FNV-1a over words.
public struct ResultHash: Sendable {
  public private(set) var value: UInt64 = 0xcbf2_9ce4_8422_2325
  public init() {}
  public mutating func add(_ word: UInt64) {
    value = (value ^ word) &* 0x0000_0100_0000_01b3
  }
}

/// Prints measurements as a table, or as one JSON object per line.
public struct Table {
  private let json: Bool
  public private(set) var failures: [String] = []

  public init(json: Bool) {
    self.json = json
    guard !json else { return }
    print(Self.left("row", 46) + Self.right("ns/op", 12) + Self.right("mallocs/op", 12) + "  result")
  }

  public mutating func add(_ row: Measurement) {
    if row.mallocs > 0, !row.mayAllocate {
      failures.append("\(row.name): \(row.mallocs) allocations in \(row.operations) operations")
    }
    let nanoseconds = Self.fixed(row.nanoseconds, 1)
    let mallocs = Self.fixed(row.mallocsPerOperation, 3)
    let hash = String(row.hash, radix: 16)
    if json {
      let cost = #""nanoseconds":\#(nanoseconds),"mallocs":\#(mallocs)"#
      print(#"{"row":"\#(row.name)",\#(cost),"operations":\#(row.operations),"hash":"\#(hash)"}"#)
    } else {
      print(Self.left(row.name, 46) + Self.right(nanoseconds, 12) + Self.right(mallocs, 12) + "  " + hash)
    }
  }

  /// 0, or 1 after telling which rows allocated.
  public func finish() -> Int32 {
    for failure in failures { print("allocates: \(failure)") }
    return failures.isEmpty ? 0 : 1
  }

  public static func left(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }
  public static func right(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(0, width - text.count)) + text
  }
  /// A number with a fixed count of decimals, without Foundation.
  public static func fixed(_ value: Double, _ decimals: Int) -> String {
    guard value.isFinite else { return "-" }
    var scale = 1.0
    for _ in 0..<decimals { scale *= 10 }
    let scaled = Int64((abs(value) * scale).rounded())
    let whole = scaled / Int64(scale)
    let sign = value < 0 && scaled > 0 ? "-" : ""
    guard decimals > 0 else { return sign + String(whole) }
    let fraction = String(scaled % Int64(scale))
    return sign + String(whole) + "." + String(repeating: "0", count: decimals - fraction.count) + fraction
  }
}
