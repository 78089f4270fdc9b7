import Foundation
import Glibc
import Synchronization
import Testing

extension Tag {
  /// Tags tests, or whole suites, that judge audio or need a processor: `Scripts/live-tests --audio` runs them, with nothing else
  /// at the same time.
  @Tag static var audio: Self
}

/// What a failure means: the gateway is at fault (red), or the machine was late while it happened (void). `Scripts/live-tests`
/// repeats a void try, and names the file for the lines that are written here; the first failure on a machine in time is final.
enum Verdict {
  /// How late a test's machine may be.
  enum Limit {
    /// Milliseconds, and a share of the time.
    typealias Bounds = (worst: Double, p99: Double, pressure: Double?)
    /// A peer's play-out has 20 ms of audio in reserve, but the canary is scheduled sooner than a thread with work: beside two
    /// busy cores calls sounded bad while it was 12 and 15 ms late and their threads had waited 12 to 33 % of the time; in calls
    /// that sounded good they had waited 1 to 9 %.
    static let audio: Bounds = (worst: 10, p99: 3, pressure: 0.25)
    /// Deadlines follow the canary; the times that peers promise each other (T1 is 500 ms, an app's timers are seconds) tolerate
    /// such a stall. The pressure is not judged, because the unit tests that run at the same time wait for a processor most of
    /// the time.
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

  /// Writes one line: the words, separated by tabs.
  fileprivate static func write(_ words: [String]) {
    guard let file, file >= 0 else { return }
    let line = words.joined(separator: "\t").replacing("\n", with: " ") + "\n"
    _ = line.withCString { Glibc.write(file, $0, line.utf8.count) }
  }

  /// Notes a failure with the lateness at the moment at which it is found.
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

  /// Called by everything that judges sound: a test without the tag would run beside builds.
  static func judgesAudio(_ location: SourceLocation = #_sourceLocation) {
    let isTagged = Test.current?.tags.contains(.audio) ?? true
    if !isTagged { write(["red", Test.current?.name ?? "", "no tag"]) }
    #expect(
      isTagged, "a test that judges sound is tagged: @Test(.tags(.audio)), or @Suite(.tags(.audio), …)", sourceLocation: location)
  }
}

/// Trait of the suite that contains all others: each case runs with the canary beside it.
struct VerdictTrait: SuiteTrait, TestTrait, TestScoping {
  var isRecursive: Bool { true }

  /// The part that `Scripts/live-tests` requests of a suite with tests of both kinds: `audio`, or the rest.
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
  /// Notes failures with the canary's lateness.
  static var noted: Self { .compactMapIssues(Verdict.note) }
}

/// Runs a call that returns the faults of its audio, and adds what the gateway's records and the peers count: packets lost on
/// this machine's loopback, frames that were made up. The first fault is final; the canary decides whether it is the gateway's.
/// - Parameters:
///   - loses: the test itself loses packets, or removes a network.
///   - delay: what the test adds between the gateway and the app, one way.
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
