import CMallocCount

/// One implementation of one operation: `run` prepares what it needs, then hands its operation to the loop exactly once.
///
///     BenchWork("libsrtp2") { loop in
///       let session = try makeSession()                       // not measured
///       loop.run { index in protect(packets[index % 400]) }   // measured; returns what the operation produced, for the hash
///     }
///
/// It is run several times, each time from new, so that its results do not depend on how long it ran before.
public struct BenchWork {
  public var name: String
  let run: (BenchLoop) throws -> Void

  public init(_ name: String, run: @escaping (BenchLoop) throws -> Void) {
    self.name = name
    self.run = run
  }
}

/// Repeats one operation and takes its CPU time, allocations and result.
public final class BenchLoop {
  let operations: Int
  let counting: Bool
  private(set) var nanoseconds: Double = 0
  private(set) var mallocs: UInt64 = 0
  private(set) var hash = ResultHash()
  private(set) var ran = false

  init(operations: Int, counting: Bool) {
    self.operations = max(1, operations)
    self.counting = counting
  }

  /// How often `body` is called, warm-up included: what a bench has to prepare at least.
  public var total: Int { operations + warmUp }
  private var warmUp: Int { max(1, operations / 10) }

  /// Calls `body` with 0, 1, 2, …; a tenth of the operations come first and are not measured.
  public func run(_ body: (Int) throws -> UInt64) rethrows {
    ran = true
    for index in 0..<warmUp { _ = try body(index) }
    let end = warmUp + operations
    if counting {
      count_instructions(1)
      for index in warmUp..<end { hash.add(try body(index)) }
      count_instructions(0)
      return
    }
    let allocated = malloc_count()
    let start = cpuNanoseconds()
    for index in warmUp..<end { hash.add(try body(index)) }
    nanoseconds = Double(cpuNanoseconds() - start)
    mallocs = malloc_count() - allocated
  }
}
