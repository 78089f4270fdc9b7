import Glibc

/// How a row's value is made from the time of one operation.
public enum BenchValue: Sendable {
  /// Nanoseconds of CPU time per operation: less is better.
  case nanoseconds
  /// Operations per second of one core, times a factor (0.02: calls per core, when an operation is 20 ms of a call).
  case perSecond(unit: String, times: Double = 1)

  var unit: String {
    switch self {
    case .nanoseconds: "ns"
    case .perSecond(let unit, _): unit
    }
  }
  func value(_ nanoseconds: Double) -> Double {
    switch self {
    case .nanoseconds: nanoseconds
    case .perSecond(_, let factor): nanoseconds > 0 ? 1e9 / nanoseconds * factor : 0
    }
  }
}

extension Bench {
  /// Measures ours, the peers and the limit in turns, so that a slow spell of the machine hits all of them, and adds a row with the
  /// medians of their CPU times.
  /// - Parameters:
  ///   - operations: per turn; choose them so that a turn takes some 20…50 ms. A small run takes a tenth.
  ///   - rounds: turns of each; a small run takes 3.
  ///   - counted: operations whose instructions are counted, at a fiftieth of the speed; a quarter of them otherwise.
  ///   - oursMayAllocate: otherwise a single allocation of ours makes the bench fail.
  ///   - sameResult: all produce the same, so different hashes make the bench fail.
  @discardableResult public func compare(
    _ row: String, as value: BenchValue = .nanoseconds, operations: Int, rounds: Int = 9, counted countedOperations: Int? = nil,
    ours: BenchWork, peers: [BenchWork] = [],
    limit: BenchWork? = nil, goal: BenchGoal? = nil, oursMayAllocate: Bool = false, sameResult: Bool = false, note: String = ""
  ) throws -> BenchRow? {
    guard wants(row) else { return nil }
    let works = [ours] + peers + (limit.map { [$0] } ?? [])
    if let counted {
      for work in works where "\(row)/\(work.name)" == counted.work {
        try work.run(BenchLoop(operations: counted.operations, counting: true))
        exit(0)
      }
      return nil
    }
    progress(row)
    let count = isSmall ? max(1, operations / 10) : max(1, operations)
    let turns = try interleave(works, operations: count, rounds: isSmall ? 3 : max(1, rounds))
    var figures: [BenchFigure] = []
    for (work, samples) in zip(works, turns) {
      let nanoseconds = median(samples.map(\.nanoseconds))
      let fewest = samples.map(\.mallocs).min() ?? 0
      figures.append(
        BenchFigure(
          work.name, value.value(nanoseconds), nanoseconds: nanoseconds,
          instructions: instructions(of: "\(row)/\(work.name)", operations: countedOperations ?? max(1, operations / 4)),
          mallocs: fewest,
          hash: samples.first?.hash))
      require(Set(samples.map(\.hash)).count == 1, "\(row): \(work.name) gives other results each time")
    }
    require(oursMayAllocate || figures[0].mallocs == 0, "\(row): ours allocates")
    require(!sameResult || Set(figures.map(\.hash)).count == 1, "\(row): the results differ")
    let result = BenchRow(
      row, unit: value.unit, ours: figures[0], peers: Array(figures[1..<(1 + peers.count)]),
      limit: limit == nil ? nil : figures.last, goal: goal, note: note)
    add(result)
    return result
  }

  private struct Turn {
    var nanoseconds: Double
    var mallocs: Double
    var hash: UInt64
  }

  private func interleave(_ works: [BenchWork], operations: Int, rounds: Int) throws -> [[Turn]] {
    var turns = [[Turn]](repeating: [], count: works.count)
    for _ in 0..<rounds {
      for (index, work) in works.enumerated() {
        let loop = BenchLoop(operations: operations, counting: false)
        try work.run(loop)
        guard loop.ran else { throw BenchError(text: "\(work.name) did not run its loop") }
        let each = 1 / Double(operations)
        turns[index].append(
          Turn(nanoseconds: loop.nanoseconds * each, mallocs: Double(loop.mallocs) * each, hash: loop.hash.value))
      }
    }
    return turns
  }

  /// Instructions of one operation, counted in a child of the same executable; nil in a small run or without valgrind.
  private func instructions(of work: String, operations: Int) -> Double? {
    guard !isSmall, let counter = InstructionCounter.shared else { return nil }
    let few = max(1, operations / 2)
    guard let counts = counter.counts(work, operations: [few, few * 3], bench: self), counts.count == 2, counts[1] > counts[0]
    else {
      return nil
    }
    return Double(counts[1] - counts[0]) / Double(few * 2)
  }
}

public struct BenchError: Error, CustomStringConvertible {
  public var text: String
  public var description: String { text }
  public init(text: String) { self.text = text }
}

/// The middle one, or the mean of the two in the middle; 0 of none.
public func median(_ values: [Double]) -> Double {
  guard !values.isEmpty else { return 0 }
  let sorted = values.sorted()
  let middle = sorted.count / 2
  return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}
