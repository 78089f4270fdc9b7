import AppleStandIn
import Testing
import TrunklineBytes

/// The system's machine on virtual time, with the app's side played by hand.
struct MachineWorld {
  var machine: SystemMachine
  var now = Instant.zero

  init(_ change: (inout SystemRules) -> Void = { _ in }) {
    var rules = SystemRules.strict
    change(&rules)
    machine = SystemMachine(rules, random: .seeded(1))
  }

  mutating func give(_ input: SystemMachine.Input) -> [SystemMachine.Action] {
    var out: [SystemMachine.Action] = []
    machine.handle(input, at: now, into: &out)
    return out
  }
  mutating func advance(_ time: Duration) -> [SystemMachine.Action] {
    let end = now + time
    var out: [SystemMachine.Action] = []
    while let due = machine.nextTimeout, due <= end {
      now = due
      machine.timeout(at: now, into: &out)
    }
    now = end
    return out
  }
  /// The app runs and its provider has begun.
  mutating func began() {
    _ = give(.launched)
    _ = give(.report(Identifier(high: 9, low: 9), .init("x")))
    _ = advance(machine.rules.beginTime)
    _ = give(.reportEnded(Identifier(high: 9, low: 9), .failed))
  }
  /// The action that is to be performed now.
  func performed(_ actions: [SystemMachine.Action]) -> SystemMachine.ActionID? {
    actions.lazy.compactMap { if case .perform(let id, _) = $0 { id } else { nil } }.first
  }
  /// A call that was answered and whose audio runs.
  mutating func active(_ call: Identifier) throws {
    _ = give(.report(call, .init("x")))
    let action = try #require(performed(give(.tap(.answer(call)))))
    _ = give(.complete(action, .fulfilled))
    _ = advance(.milliseconds(100))
    #expect(machine.isAudioActive && machine.calls[call]?.phase == .active)
  }
}
