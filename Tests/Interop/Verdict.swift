import Foundation
import Glibc
import Synchronization
import Testing

extension Tag {
  /// Of tests, or whole suites, that judge what is heard, or need a processor: `Scripts/live-tests --audio` runs them, with nothing beside them.
  @Tag static var audio: Self
}

/// What a failure says: that the gateway is at fault (red), or that the machine was late while it happened (void). A try that is void is repeated
/// by `Scripts/live-tests`, which names the file for the lines that are written here; the first failure on a machine in time is final.
enum Verdict {
  /// What a test bears of its machine.
  enum Limit {
    /// Milliseconds, and a share of the time.
    typealias Bounds = (worst: Double, p99: Double, pressure: Double?)
    /// A peer's play-out has 20 ms of audio to wait with, but the canary is let in sooner than a thread with work: beside two busy cores calls sounded
    /// badly while it was 12 and 15 ms late, and their threads had waited 12 to 33 % of the time; 1 to 9 % in calls that sounded well.
    static let audio: Bounds = (worst: 10, p99: 3, pressure: 0.25)
    /// Deadlines follow the canary; what peers promise each other (T1 is 500 ms, an app's timers are seconds) bears a stall like this. The pressure
    /// is not judged, because the unit tests beside these wait for a processor most of the time.
    static let other: Bounds = (worst: 200, p99: 20, pressure: nil)
  }

  fileprivate struct Running {
    var name = ""
    var isAudio = false
    var start = Canary.now
  }
  fileprivate static let running = Mutex(Running())

  private static let file = ProcessInfo.processInfo.environment["TRUNKLINE_VERDICT"].map {
    open($0, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o644)
  }

  /// One line of words, with tabs between.
  fileprivate static func write(_ words: [String]) {
    guard let file, file >= 0 else { return }
    let line = words.joined(separator: "\t").replacing("\n", with: " ") + "\n"
    _ = line.withCString { Glibc.write(file, $0, line.utf8.count) }
  }

  /// Keeps what a failure says at the moment at which it comes to light.
  @Sendable fileprivate static func note(_ issue: Issue) -> Issue? {
    if issue.isFailure { noteFailure() }
    return issue
  }

  fileprivate static func noteFailure() {
    let running = running.withLock { $0 }
    let lateness = Canary.lateness(since: running.start)
    let limit = running.isAudio ? Limit.audio : Limit.other
    let isVoid =
      lateness.worstMilliseconds > limit.worst || lateness.p99Milliseconds > limit.p99
      || (lateness.pressure ?? 0) > (limit.pressure ?? 1)
    write([isVoid ? "void" : "red", running.name, "\(lateness)"])
  }

  /// For whatever judges sound: a test without the tag would be run beside builds.
  static func judgesAudio(_ location: SourceLocation = #_sourceLocation) {
    let isTagged = Test.current?.tags.contains(.audio) ?? true
    if !isTagged { write(["red", Test.current?.name ?? "", "no tag"]) }
    #expect(
      isTagged, "a test that judges sound is tagged: @Test(.tags(.audio)), or @Suite(.tags(.audio), …)", sourceLocation: location)
  }
}

/// Of the suite that all others are in: each case runs with the canary beside it.
struct VerdictTrait: SuiteTrait, TestTrait, TestScoping {
  var isRecursive: Bool { true }

  /// What `Scripts/live-tests` wants of a suite that has tests of both kinds: `audio`, or what is without.
  private static let part = ProcessInfo.processInfo.environment["TRUNKLINE_PART"]

  func prepare(for test: Test) async throws {
    guard let part = Self.part, !test.isSuite else { return }
    try await ConditionTrait.enabled(if: test.tags.contains(.audio) == (part == "audio"), "of the other part").prepare(for: test)
  }

  func scopeProvider(for test: Test, testCase: Test.Case?) -> Self? { testCase == nil ? nil : self }

  func provideScope(for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void) async throws {
    let start = Canary.now
    Verdict.running.withLock { $0 = .init(name: test.name, isAudio: test.tags.contains(.audio), start: start) }
    defer {
      let lateness = Canary.lateness(since: start)
      let pressure = lateness.pressure.map { "\(Int($0 * 100))" } ?? "-"
      Verdict.write(["canary", test.name, "\(lateness.worstMilliseconds)", "\(lateness.p99Milliseconds)", pressure])
    }
    do { try await function() } catch {
      Verdict.noteFailure()
      throw error
    }
  }
}

extension Trait where Self == VerdictTrait {
  static var beneathCanary: Self { Self() }
}

extension Trait where Self == IssueHandlingTrait {
  /// Failures are noted with what the canary says.
  static var noted: Self { .compactMapIssues(Verdict.note) }
}

/// Runs a call that gives what was wrong with its audio, and adds what the gateway's records and the peers count: packets that were lost on this
/// machine's loopback, frames that were made up. The first fault is final; whether it is the gateway's, the canary says.
/// - Parameters:
///   - loses: the test itself loses packets, or takes a network away.
///   - delay: what the test puts between the gateway and the app, one way.
func expectGoodAudio(
  loses: Bool = false, delay: Duration = .zero, _ location: SourceLocation = #_sourceLocation,
  _ call: () async throws -> [String]
) async throws {
  Verdict.judgesAudio(location)
  let calls = JudgedCalls()
  var heard: [String]?
  defer {
    let counted = calls.judge(delay: delay)
    Verdict.write(["calls", "\(counted.calls)"])
    let wrong = (heard ?? []) + (loses ? [] : counted.faults)
    #expect(wrong.isEmpty, sourceLocation: location)
  }
  heard = try await call()
}
