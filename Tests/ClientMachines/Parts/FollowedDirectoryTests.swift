import Testing
import TrunklineAppProtocol
import TrunklineBytes

@testable import TrunklineClientMachines

/// The directory's part alone; `PhoneDirectoryTests` has it in the machine.
@Suite struct FollowedDirectoryTests {
  private func welcome(_ version: Int, caps: [String] = ["dir"]) -> Welcome {
    Welcome(
      sid: "s", resumeToken: "r", resumed: false, replayFrom: 1, time: 0, hb: 15_000, ice: [], calls: [], dirVersion: version,
      caps: caps)
  }
  private func answer(_ version: Int, of: String? = nil, parts: Int, next: Int64? = nil) -> Result<Success, Failure> {
    .success(Success(dir: DirectoryAnswer(version: version, of: of, parts: parts, next: next)))
  }
  private func part(_ version: Int, _ number: Int64) -> DirectoryPart {
    DirectoryPart(version: version, identify: [.init(number, "n")])
  }
  /// The names that an output gives the app; nil: none.
  private func numbers(_ output: FollowedDirectory.Output) -> [Int64]? {
    if case .parts(let parts) = output { parts.compactMap { $0.identify?.first?.n } } else { nil }
  }
  private func rest(_ output: FollowedDirectory.Output) -> DirectoryGet? {
    if case .ask(let get) = output { get } else { nil }
  }
  /// An app without a directory follows version 9, which was requested.
  private func asked() -> FollowedDirectory {
    var directory = FollowedDirectory()
    directory.follow(have: nil, of: nil)
    directory.welcomed(welcome(9))
    directory.asked(id(1))
    return directory
  }

  @Test func `nothing is wanted before an app follows, without directories at the gateway, and of a version that the app has`() {
    var directory = FollowedDirectory()
    #expect(directory.wanted == nil && directory.retryAt == nil)
    directory.welcomed(welcome(9))
    directory.changed(DirectoryChanged(version: 10))
    #expect(directory.wanted == nil)
    directory.follow(have: 10, of: nil)
    #expect(directory.wanted == nil)
    directory.follow(have: 9, of: nil)
    #expect(directory.wanted == DirectoryGet(have: 9))
    directory.welcomed(welcome(10, caps: []))
    #expect(directory.wanted == nil)
  }

  @Test func `a request that was not sent stays wanted; one that was sent is not sent again`() {
    var directory = asked()
    #expect(directory.wanted == nil && directory.isQuestion(id(1)) && !directory.isQuestion(id(2)))
    directory.asked(nil)
    #expect(directory.wanted == DirectoryGet())
  }

  @Test func `answers and parts that no request waits for are ignored`() {
    var directory = FollowedDirectory()
    #expect(
      numbers(directory.received(part(9, 1))) == nil && numbers(directory.answered(answer(9, parts: 0), at: seconds(1))) == nil)
    directory = asked()
    #expect(numbers(directory.received(part(9, 1))) == nil, "before the answer")
    _ = directory.answered(answer(9, parts: 1), at: seconds(1))
    #expect(numbers(directory.received(part(8, 1))) == nil, "of another version")
    #expect(numbers(directory.received(part(9, 2))) == [2] && numbers(directory.received(part(9, 2))) == nil, "repeated")
  }

  @Test func `parts are given together, over all answers of one version, and an answer of another version starts again`() {
    var directory = asked()
    _ = directory.answered(answer(9, parts: 1, next: 20), at: seconds(1))
    #expect(rest(directory.received(part(9, 1))) == DirectoryGet(version: 9, after: 20))
    directory.asked(id(2))
    _ = directory.answered(answer(11, parts: 1), at: seconds(1))
    #expect(numbers(directory.received(part(11, 5))) == [5] && directory.wanted == nil)
  }

  @Test func `a change while an answer is open is wanted after it, and an empty answer is complete at once`() {
    var directory = asked()
    directory.changed(DirectoryChanged(version: 12))
    #expect(directory.wanted == nil)
    #expect(numbers(directory.answered(answer(9, parts: 0), at: seconds(1))) == [])
    #expect(directory.wanted == DirectoryGet(have: 9))
  }

  @Test func `other directories of the same version are wanted`() {
    var directory = asked()
    _ = directory.answered(answer(9, of: "x", parts: 0), at: seconds(1))
    #expect(directory.wanted == nil)
    directory.changed(DirectoryChanged(version: 9, of: "y"))
    #expect(directory.wanted == DirectoryGet(have: 9, of: "x"))
  }

  @Test func `offline between the answer and its parts: they are dropped, and wanted from the start`() {
    var directory = asked()
    _ = directory.answered(answer(9, parts: 2), at: seconds(1))
    _ = directory.received(part(9, 1))
    directory.wentOffline()
    #expect(numbers(directory.received(part(9, 2))) == nil && directory.wanted == DirectoryGet())
    directory.asked(id(2))
    directory.wentOffline()
    #expect(directory.wanted == nil, "the session repeats the request")
    directory.sessionEnded()
    #expect(directory.wanted == DirectoryGet() && !directory.isQuestion(id(2)))
  }

  @Test func `a failure is tried again after its time, and never if the gateway has no directories`() {
    for (code, retry) in [(ErrorCode.server, 7_000), (.unsupported, nil)] as [(ErrorCode, Int?)] {
      var directory = asked()
      var failure = Failure(code)
      failure.retryMs = retry
      _ = directory.answered(.failure(failure), at: seconds(1))
      #expect(directory.retryAt == seconds(retry == nil ? 6 : 8) && directory.wanted == nil)
      directory.retryDue()
      #expect(directory.retryAt == nil && (directory.wanted != nil) == (code == .server))
    }
    var directory = asked()
    _ = directory.answered(.success(Success()), at: seconds(1))
    #expect(directory.retryAt == seconds(6), "an answer without a directory")
  }

  @Test func `to follow again keeps the version that the gateway has named`() {
    var directory = asked()
    directory.changed(DirectoryChanged(version: 11))
    directory.follow(have: 11, of: nil)
    #expect(directory.wanted == nil && !directory.isQuestion(id(1)))
  }
}
