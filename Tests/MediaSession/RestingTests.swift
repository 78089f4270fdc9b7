import Testing

@testable import TrunklineMediaSession

/// A relayed call works on its packets as they come; its ticks are few.
@Suite struct RestingTests {
  @Test func `four of five ticks of a relayed call pass, none of a transcoded one`() throws {
    var relayed = try Bench(app: .pcmu)
    relayed.connect()
    try relayed.run(frames: 100, trunk: { tone($0) }, app: { tone($0) })
    #expect((79...80).contains(relayed.rested))
    #expect(relayed.toApp.count == 100 && relayed.toTrunk.count == 100)

    var transcoded = try Bench()
    transcoded.connect()
    try transcoded.run(frames: 100, trunk: { tone($0) }, app: { tone($0) })
    #expect(transcoded.rested == 0)
  }

  @Test func `an app that falls silent is filled in after 200 ms, every 20 ms`() throws {
    for before in 20..<30 {
      var bench = try Bench(app: .pcmu)
      bench.connect()
      try bench.run(frames: before, trunk: { tone($0) }, app: { tone($0) })
      let sent = bench.toTrunk.count
      try bench.run(frames: 10, trunk: { tone($0) })
      #expect(bench.toTrunk.count <= sent + 1)
      try bench.run(frames: 1, trunk: { tone($0) })
      #expect(bench.toTrunk.count >= sent + 1)
      try bench.run(frames: 20, trunk: { tone($0) })
      #expect(bench.toTrunk.count >= sent + 21)
    }
  }

  @Test func `a command is worked on at the next tick`() throws {
    for before in 20..<26 {
      var bench = try Bench(app: .pcmu)
      bench.connect()
      try bench.run(frames: before, trunk: { tone($0) }, app: { tone($0) })
      bench.command(.sendDigits(Bench.id, DigitRequest(digits: "5")))
      try bench.run(frames: 1, trunk: { tone($0) })
      #expect(bench.toTrunk.last?.header.payloadType == 101)
    }
  }

  @Test func `reports go out as often as before`() throws {
    var bench = try Bench(app: .pcmu)
    bench.connect()
    try bench.run(frames: 3_000, trunk: { tone($0) }, app: { tone($0) })
    // A minute of one every 2.5 to 7.5 s to the trunk, and of one every 0.5 to 1.5 s to the app.
    #expect((8...24).contains(bench.toTrunkControl.count))
    #expect((40...120).contains(bench.toAppControl.count))
    let qualities = bench.events.count { if case .quality = $0 { true } else { false } }
    #expect((11...12).contains(qualities))
  }
}
