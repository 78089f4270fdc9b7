import Testing
import TrunklineBytes
import TrunklinePlatform

@Suite struct MetricTests {
  enum Reason: String, CaseIterable, Sendable { case stranger, malformed }

  @Test func `counts from several threads add up`() throws {
    let counter = Counter()
    let gauge = Gauge()
    let histogram = Histogram(bounds: [1, 2])
    let threads = try (0..<4).map { index in
      try NamedThread.start(name: "count-\(index)") {
        for step in 0..<10_000 {
          counter.increment()
          gauge.add(index % 2 == 0 ? 1 : -1)
          histogram.record(Double(step % 3) + 0.5)
        }
      }
    }
    for thread in threads { thread.join() }
    #expect(counter.value == 40_000)
    #expect(gauge.value == 0)
    #expect(histogram.snapshot.total == 40_000)
    #expect(abs(histogram.snapshot.sum - 4 * (3_334 * 0.5 + 3_333 * 1.5 + 3_333 * 2.5)) < 0.001)
  }

  @Test func `an observation on a bound belongs to that bucket, one above all to the last`() {
    let histogram = Histogram(bounds: [1, 2])
    for value in [0, 1, 1.5, 2, 3] { histogram.record(value) }
    histogram.record(.nan)
    #expect(histogram.snapshot == HistogramSnapshot(bounds: [1, 2], counts: [2, 2, 1], sum: 7.5))
    let seconds = Histogram(bounds: [0.1])
    seconds.record(.milliseconds(50))
    #expect(seconds.snapshot.counts == [1, 0])
  }

  @Test func `every case of a label has a sample from the start`() {
    let drops = LabelledCounters<Reason>()
    drops[.malformed].increment(by: 3)
    let family = MetricFamily.counters("drops_total", help: "Drops.", label: "reason", drops)
    #expect(family.snapshot().map(\.labels) == [["stranger"], ["malformed"]])
  }

  @Test func `a table of labels is bounded: the rest is counted under other`() {
    let table = CounterTable(labelNames: ["trunk"], limit: 2)
    for name in ["a", "b", "c", "d", "a"] { table.counter(name).increment() }
    let samples = MetricFamily.counters("t_total", help: "T.", table).snapshot()
    #expect(samples.map(\.labels) == [["a"], ["b"], ["other"]])
    let values: [Int64] = samples.compactMap { if case .integer(let value) = $0.value { value } else { nil } }
    #expect(values == [2, 1, 2])
  }

  @Test func `the process is ready when every component is, and says why not`() {
    let board = Readiness()
    #expect(!board.isReady)
    board.set("sip", ready: true)
    board.set("store", ready: false, why: "disk full")
    #expect(!board.isReady)
    #expect(board.report == [.init(component: "sip", reason: nil), .init(component: "store", reason: "disk full")])
    board.set("store", ready: true)
    #expect(board.isReady)
    board.remove("store")
    #expect(board.report.count == 1)
  }
}
