import CallFlow
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIPDialogs

/// Two or three things at once, in every order, and shifted against each other by less and more than the way takes.
@Suite struct RaceTests {
  /// All orders of a few actions at the same instant, and each pair with a gap of some milliseconds.
  private func races(_ names: [String], _ run: ([(String, Int)]) throws -> Void) rethrows {
    for order in permutations(names) {
      for gap in [0, 1, 4, 5, 6, 9, 10, 11, 15, 20, 30] { try run(order.enumerated().map { ($1, $0 * gap) }) }
    }
  }

  @Test func `answer and answer: one winner (INV)`() throws {
    try races(["phone", "tablet", "browser"]) { order in
      let world = World()
      let apps = ["phone", "tablet", "browser"].map { world.app($0) }
      let leg = world.carrier.call()
      world.run(.seconds(1))
      let call = try #require(apps[0].offered.first)
      for (name, at) in order { world.after(.milliseconds(at)) { apps.first { $0.device == name }?.tap(call) } }
      world.run(.seconds(1))
      #expect(apps.count { $0.won.contains(call) } == 1, "\(order)")
      #expect(world.carrier.final(leg) == 200)
      world.carrier.hangUp(leg)
      world.run(.seconds(1))
      Invariants.check(world)
    }
  }

  @Test func `answer and CANCEL: 200 or 487, and both sides agree (END-5)`() throws {
    try races(["answer", "cancel"]) { order in
      let world = World()
      let phone = world.app("phone")
      let leg = world.carrier.call()
      world.run(.seconds(1))
      let call = try #require(phone.offered.first)
      for (name, at) in order {
        world.after(.milliseconds(at)) { if name == "answer" { phone.tap(call) } else { world.carrier.cancel(leg) } }
      }
      world.run(.seconds(40))
      let final = try #require(world.finals.first?.value.first)
      #expect(final == 200 || final == 487)
      let last = phone.received(call).last ?? ""
      // a 200 that crossed the CANCEL is ended by the carrier's BYE
      #expect(final == 200 ? last == "call.ended remoteHangup" : last.hasSuffix("callerCancelled"), "\(order): \(final), \(last)")
      Invariants.check(world)
    }
  }

  @Test func `ready and the deadline: connected or timed out, never both`() throws {
    for early in stride(from: -30, through: 30, by: 3) {
      let world = World()
      let phone = world.app("phone") { $0.saysReady = false }
      let leg = world.carrier.call()
      world.run(.seconds(1))
      let call = try #require(phone.offered.first)
      phone.tap(call)
      world.run(.milliseconds(10))
      // the deadline is 10 s after the tap's receipt; the word takes 10 ms
      world.run(.milliseconds(9_990 - early))
      phone.send(.mediaReady(MediaReady(gen: 1)), call: call)
      world.run(.seconds(1))
      let final = try #require(world.carrier.final(leg))
      #expect(final == (early > 0 ? 200 : 480) || early == 0, "early \(early): \(final)")
      if final == 200 { world.carrier.hangUp(leg) }
      world.run(.seconds(1))
      #expect(phone.received(call).last == (final == 200 ? "call.ended remoteHangup" : "call.ended mediaTimeout"))
      Invariants.check(world)
    }
  }

  @Test func `call-end and BYE: one end`() throws {
    try races(["end", "bye"]) { order in
      let world = World()
      let phone = world.app("phone") { $0.answersAfter = .milliseconds(100) }
      let leg = world.carrier.call()
      world.run(.seconds(2))
      let call = try #require(phone.offered.first)
      for (name, at) in order {
        world.after(.milliseconds(at)) {
          if name == "end" { phone.send(.callEnd(CallEnd()), call: call) } else { world.carrier.hangUp(leg) }
        }
      }
      world.run(.seconds(2))
      #expect(["call.ended localEnd", "call.ended remoteHangup"].contains(phone.received(call).last))
      Invariants.check(world)
    }
  }

  @Test func `fail and ready: connected, then ended, or failed before the 200`() throws {
    try races(["fail", "ready", "tap"]) { order in
      let world = World()
      let phone = world.app("phone") { $0.saysReady = false }
      let leg = world.carrier.call()
      world.run(.seconds(1))
      let call = try #require(phone.offered.first)
      for (name, at) in order {
        world.after(.milliseconds(at)) {
          switch name {
          case "fail": phone.send(.mediaFail(MediaFail(gen: 1, stage: .ice)), call: call)
          case "ready": phone.send(.mediaReady(MediaReady(gen: 1)), call: call)
          default: phone.tap(call)
          }
        }
      }
      world.run(.seconds(12))
      let final = try #require(world.carrier.final(leg), "\(order)")
      if final == 200, phone.terminals[call] == nil { world.carrier.hangUp(leg) }
      world.run(.seconds(1))
      Invariants.check(world)
    }
  }

  @Test func `reject, answer and CANCEL of two devices`() throws {
    try races(["reject", "answer", "cancel"]) { order in
      let world = World()
      let phone = world.app("phone")
      let tablet = world.app("tablet")
      let leg = world.carrier.call()
      world.run(.seconds(1))
      let call = try #require(phone.offered.first)
      for (name, at) in order {
        world.after(.milliseconds(at)) {
          switch name {
          case "reject": phone.send(.callReject(CallReject()), call: call)
          case "answer": tablet.tap(call)
          default: world.carrier.cancel(leg)
          }
        }
      }
      world.run(.seconds(40))
      Invariants.check(world)
    }
  }

  @Test func `a socket breaks at every moment of a call: one terminal message in the end`() throws {
    for milliseconds in stride(from: 0, through: 400, by: 8) {
      for resumes in [true, false] {
        let world = World()
        let phone = world.app("phone") { $0.answersAfter = .milliseconds(150) }
        let leg = world.carrier.call()
        world.run(.milliseconds(milliseconds))
        phone.drop()
        world.run(.milliseconds(40))
        phone.connect(resuming: resumes)
        world.run(.seconds(46))
        if world.carrier.final(leg) == 200 { world.carrier.hangUp(leg) }
        world.run(.seconds(1))
        #expect(world.records.count == 1)
        Invariants.check(world)
      }
    }
  }

  @Test func `the carrier cancels or hangs up at every moment`() throws {
    for milliseconds in stride(from: 0, through: 400, by: 3) {
      let world = World()
      let phone = world.app("phone") { $0.answersAfter = .milliseconds(150) }
      world.app("tablet")
      let leg = world.carrier.call()
      world.run(.milliseconds(milliseconds))
      if world.carrier.final(leg) == 200 { world.carrier.hangUp(leg) } else { world.carrier.cancel(leg) }
      world.run(.seconds(40))
      #expect(world.records.count == world.machine.statistics.incoming)
      Invariants.check(world)
      _ = phone
    }
  }
}

/// All orders of a few things.
func permutations<T>(_ items: [T]) -> [[T]] {
  guard items.count > 1 else { return [items] }
  return items.indices.flatMap { index -> [[T]] in
    var rest = items
    let first = rest.remove(at: index)
    return permutations(rest).map { [first] + $0 }
  }
}
