import Testing

@testable import TrunklineClient

/// Which audio route is used, as devices come and go.
@Suite struct AudioRouteChoiceTests {
  private static let receiver = AudioRoute(id: "receiver", kind: .receiver, name: "Receiver")
  private static let speaker = AudioRoute(id: "speaker", kind: .speaker, name: "Speaker")
  private static let headset = AudioRoute(id: "00:11", kind: .bluetooth, name: "Buds")

  private struct Rig {
    var choice = AudioRouteChoice()
    mutating func list(_ available: [AudioRoute], _ current: AudioRoute?) -> [AudioRouteChoice.Action] {
      var actions: [AudioRouteChoice.Action] = []
      choice.listed(AudioRouteList(available: available, current: current), into: &actions)
      return actions
    }
    mutating func choose(_ route: AudioRoute?) -> (Bool, [AudioRouteChoice.Action]) {
      var actions: [AudioRouteChoice.Action] = []
      return (choice.choose(route, into: &actions), actions)
    }
    mutating func start() -> [AudioRouteChoice.Action] {
      var actions: [AudioRouteChoice.Action] = []
      choice.started(into: &actions)
      return actions
    }
  }
  private static let all = [receiver, speaker, headset]
  private static let builtIn = [receiver, speaker]

  @Test func `without a choice the system decides, and nothing is asked of it`() {
    var rig = Rig()
    #expect(rig.list(Self.all, Self.headset).isEmpty && rig.list(Self.builtIn, Self.receiver).isEmpty && rig.start().isEmpty)
    #expect(rig.choice.chosen == nil && !rig.choice.isFallback && rig.choice.list.current == Self.receiver)
  }

  @Test func `a route that is not there cannot be chosen, and the choice of before stays`() {
    var rig = Rig()
    _ = rig.list(Self.builtIn, Self.receiver)
    #expect(rig.choose(Self.speaker) == (true, [.use(Self.speaker)]))
    #expect(rig.choose(Self.headset) == (false, []) && rig.choice.chosen == Self.speaker)
  }

  @Test func `a chosen route that is unplugged is fallen back from, said once, and taken back when it returns`() {
    var rig = Rig()
    _ = rig.list(Self.all, Self.receiver)
    #expect(rig.choose(Self.headset) == (true, [.use(Self.headset)]))
    #expect(rig.list(Self.all, Self.headset).isEmpty)
    #expect(rig.list(Self.builtIn, Self.receiver) == [.use(nil), .fellBack(from: Self.headset)])
    #expect(rig.list(Self.builtIn, Self.receiver).isEmpty && rig.choice.isFallback && rig.choice.chosen == Self.headset)
    #expect(rig.start().isEmpty, "a route that is not there is not asked for")
    #expect(rig.list(Self.all, Self.receiver) == [.use(Self.headset), .returned(to: Self.headset)])
    #expect(rig.list(Self.all, Self.headset).isEmpty && !rig.choice.isFallback)
  }

  @Test func `while it is gone the app may choose another, which ends the wait for the first`() {
    var rig = Rig()
    _ = rig.list(Self.all, Self.headset)
    _ = rig.choose(Self.headset)
    _ = rig.list(Self.builtIn, Self.receiver)
    #expect(rig.choose(Self.speaker) == (true, [.use(Self.speaker)]))
    #expect(rig.list(Self.all, Self.speaker).isEmpty && rig.choice.chosen == Self.speaker)
    #expect(rig.choose(nil) == (true, [.use(nil)]) && rig.choice.chosen == nil)
  }

  @Test func `what the user takes in the system's own picker is the choice from then on`() {
    var rig = Rig()
    _ = rig.list(Self.all, Self.receiver)
    _ = rig.choose(Self.headset)
    // other news before the system has done it
    #expect(rig.list(Self.all, Self.receiver).isEmpty && rig.choice.chosen == Self.headset)
    _ = rig.list(Self.all, Self.headset)
    #expect(rig.list(Self.all, Self.speaker).isEmpty && rig.choice.chosen == Self.speaker)
    #expect(rig.start() == [.use(Self.speaker)], "the next call has it too")
  }

  @Test func `a system that does otherwise is asked once for each appearance`() {
    var rig = Rig()
    _ = rig.list(Self.all, Self.receiver)
    var uses = rig.choose(Self.headset).1.count
    for _ in 0..<100 { uses += rig.list(Self.all, Self.receiver).count }
    #expect(uses == 1 && rig.choice.chosen == Self.headset)
    for _ in 0..<10 { uses += rig.list(Self.builtIn, Self.receiver).count + rig.list(Self.all, Self.receiver).count }
    #expect(uses == 41, "use and word of each going and coming, and no more")
  }

  @Test func `a list without end is cut, and an empty one is survived`() {
    var rig = Rig()
    _ = rig.list((0..<1_000).map { AudioRoute(id: "\($0)", kind: .other, name: "") }, nil)
    #expect(rig.choice.list.available.count == 32)
    _ = rig.choose(rig.choice.list.available[0])
    #expect(rig.list([], nil).count == 2 && rig.choice.isFallback)
  }
}
