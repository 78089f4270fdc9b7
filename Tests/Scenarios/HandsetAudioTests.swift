import AppleStandIn
import CallFlow
import CallModel
import Foundation
import Testing
import TrunklineBytes
import TrunklineClientMachines
import TrunklineSIPDialogs

/// The order of the system's words, the phone's and the audio device's, against the files of `Tests/Vectors/audio-session`.
/// `TRUNKLINE_GOLDEN=write swift test --filter HandsetAudioTests` writes them.
@Suite struct HandsetAudioTests {
  private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("Vectors/audio-session")
  private static let isWriting = ProcessInfo.processInfo.environment["TRUNKLINE_GOLDEN"] == "write"

  /// Each is a file.
  enum Course: String, CaseIterable, Sendable {
    case endedHere = "ended-here"
    case endedThere = "ended-there"
    case heldThenEnded = "held-then-ended"
    case activatedLate = "activated-late"
    case neverActivated = "never-activated"
    case secondCall = "second-call"
    case endAndAccept = "end-and-accept"
    case dialledSecond = "dialled-second"
    case outgoing
    case cellular
    case declined
    case cancelled
    case mediaFailed = "media-failed"
    case reset
  }

  @Test(arguments: Course.allCases)
  func `AUD-5, C6, C7: the golden sequences of actions, audio session and device, in both orders`(_ course: Course) throws {
    let steps = try steps(course)
    let file = Self.folder.appendingPathComponent(course.rawValue + ".txt")
    if Self.isWriting {
      let text = (try? String(contentsOf: file, encoding: .utf8)) ?? "# \(course.rawValue)\n"
      let written = text.split(separator: "\n").map(String.init).filter { $0.hasPrefix("#") } + steps
      try (written.joined(separator: "\n") + "\n").write(to: file, atomically: true, encoding: .utf8)
    }
    let golden = try Self.lines(course.rawValue)
    let changes = steps.difference(from: golden).map { change in
      switch change {
      case .remove(let offset, let line, _): "- \(offset + 1): \(line)"
      case .insert(let offset, let line, _): "+ \(offset + 1): \(line)"
      }
    }
    #expect(changes.isEmpty, "\(file.lastPathComponent)\n\(changes.joined(separator: "\n"))")
    #expect(Self.problems(steps, startsUnasked: course == .neverActivated) == [])
  }

  private static func lines(_ name: String) throws -> [String] {
    try String(contentsOf: folder.appendingPathComponent(name + ".txt"), encoding: .utf8).split(separator: "\n").map(String.init)
      .filter { !$0.hasPrefix("#") }
  }

  /// What is wrong in any sequence: the phases of AUD-2 in their order, started by activation or a while after it was due (R9), nothing left.
  private static func problems(_ steps: [String], startsUnasked: Bool = false) -> [String] {
    var (isConfigured, isRunning, isActive) = (false, false, false)
    var problems: [String] = []
    for (index, step) in steps.enumerated() {
      func wrong(_ text: String) { problems.append("\(index + 1): \(text)") }
      switch step {
      case "device  configure":
        if isRunning { wrong("configured while it runs") }
        isConfigured = true
      case "device  start":
        if !isConfigured || isRunning { wrong("started twice, or before it is configured") }
        if !isActive, !startsUnasked { wrong("started before didActivate") }
        isRunning = true
      case "device  stop":
        if !isRunning { wrong("stopped, and does not run") }
        isRunning = false
      case "device  release":
        if isRunning { wrong("released while it runs") }
        isConfigured = false
      case "system  didActivate": isActive = true
      case "system  didDeactivate", "system  didReset": isActive = false
      case "system  setActive": wrong("setActive is the system's")
      default: break
      }
    }
    if isConfigured || isRunning || isActive { problems.append("something is left") }
    return problems
  }

  @Test func `C7: the device is released before didDeactivate in one file, after it in another`() throws {
    func order(_ name: String) throws -> (release: Int?, deactivated: Int?) {
      let lines = try Self.lines(name)
      return (lines.firstIndex(of: "device  release"), lines.firstIndex(of: "system  didDeactivate"))
    }
    let (here, held) = (try order("ended-here"), try order("held-then-ended"))
    #expect(try #require(here.release) < #require(here.deactivated))
    #expect(try #require(held.release) > #require(held.deactivated))
  }

  /// The source documents' log can be read in two orders each (C6: configured in the action, or after didActivate; C7: released before
  /// didDeactivate, or after it). The rules take all four, and nothing else.
  @Test(arguments: [true, false], [true, false])
  func `AUD-5, C6, C7: the reference log keeps the rules in each of its orders`(isConfiguredFirst: Bool, isReleasedFirst: Bool)
    throws
  {
    let name = "reference-\(isConfiguredFirst ? "action" : "activated")-\(isReleasedFirst ? "performEnd" : "deactivated")"
    let lines = try Self.lines(name)
    #expect(Self.problems(lines) == [], "\(name)")
    func index(_ line: String) throws -> Int { try #require(lines.firstIndex(of: line), "\(name) has no \(line)") }
    #expect((try index("device  configure") < index("system  didActivate")) == isConfiguredFirst)
    #expect((try index("device  release") < index("system  didDeactivate")) == isReleasedFirst)
    // any two neighbours of these phases changed over
    for (first, second) in [
      ("device  configure", "device  start"), ("device  start", "device  stop"), ("device  stop", "device  release"),
    ] {
      var wrong = lines
      wrong.swapAt(try index(first), try index(second))
      #expect(Self.problems(wrong) != [], "\(second) before \(first)")
    }
    #expect(Self.problems(lines.filter { $0 != "device  release" }) != [], "not released")
    #expect(Self.problems(lines + ["system  setActive"]) != [])
  }

  @Test func `C6, R20: a second call that is dialled while the session is active leaves the category alone`() throws {
    let lines = try Self.lines("dialled-second")
    var isActive = false
    for line in lines {
      if line == "system  didActivate" { isActive = true }
      if line == "system  didDeactivate" { isActive = false }
      if line == "device  configure" { #expect(!isActive) }
    }
    #expect(lines.contains("system  perform hold"), "the first one is held before the second one begins")
  }

  // MARK: the courses

  private func steps(_ course: Course) throws -> [String] {
    var rules = SystemRules.strict
    if course == .activatedLate { rules.activationTime = .milliseconds(600) }
    if course == .neverActivated { rules.activationTime = nil }
    let world = World()
    world.killed("cell")
    let handset = Handset(world, device: "cell", rules: rules)
    switch course {
    case .outgoing: dial(world, handset)
    case .declined, .cancelled, .mediaFailed: try unanswered(course, world, handset)
    default: try answered(course, world, handset)
    }
    world.run(.seconds(3))
    let steps = handset.steps
    Invariants.check(world, abandoned: ["cell"])
    return steps
  }

  private func ringing(_ world: World, _ handset: Handset) throws -> (leg: LegID, call: CallID) {
    let leg = world.carrier.call()
    world.run(.seconds(1))
    return (leg, try #require(handset.shown.first { handset.system.calls[$0]?.phase == .ringing }))
  }

  private func answered(_ course: Course, _ world: World, _ handset: Handset) throws {
    let (leg, call) = try ringing(world, handset)
    handset.tap(.answer(call))
    world.run(.seconds(2))
    #expect(handset.isAudioRunning)
    switch course {
    case .endedHere: handset.tap(.end(call))
    case .heldThenEnded:
      handset.tap(.hold(call, true))
      world.run(.seconds(1))
      handset.tap(.end(call))
    case .cellular:
      handset.cellular(true)
      world.run(.seconds(1))
      handset.cellular(false)
      world.run(.seconds(1))
      handset.tap(.hold(call, false))
      world.run(.seconds(2))
      world.carrier.hangUp(leg)
    case .secondCall, .endAndAccept:
      let (second, other) = try ringing(world, handset)
      handset.tap(course == .secondCall ? .holdAndAnswer(other) : .endAndAnswer(other))
      world.run(.seconds(2))
      #expect(handset.isAudioRunning && handset.listening == other)
      world.carrier.hangUp(second)
      world.run(.seconds(1))
      if course == .secondCall { handset.tap(.end(call)) }
    case .dialledSecond:
      handset.dial(Identifier(high: 4, low: 3), "+15557654321")
      world.run(.seconds(3))
      handset.tap(.end(Identifier(high: 4, low: 3)))
      world.run(.seconds(1))
      handset.tap(.end(call))
    case .reset: handset.reset()
    default: world.carrier.hangUp(leg)
    }
  }

  private func unanswered(_ course: Course, _ world: World, _ handset: Handset) throws {
    handset.isMediaUp = course != .mediaFailed
    let (leg, call) = try ringing(world, handset)
    switch course {
    case .declined: handset.tap(.end(call))
    case .cancelled: world.carrier.cancel(leg)
    default:
      handset.tap(.answer(call))
      world.run(.seconds(1))
      handset.mediaFails(call)
      world.run(.seconds(1))
      handset.mediaFails(call)
    }
  }

  private func dial(_ world: World, _ handset: Handset) {
    handset.open()
    world.run(.seconds(1))
    let call = Identifier(high: 4, low: 2)
    handset.dial(call, "+15557654321")
    world.run(.seconds(3))
    #expect(handset.isAudioRunning)
    handset.tap(.end(call))
  }
}
