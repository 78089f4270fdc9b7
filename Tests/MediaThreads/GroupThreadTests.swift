import Testing
import TrunklineBytes
import TrunklineDTLS
import TrunklineMediaSession

@testable import MediaThreads

/// The thread of calls that may join one group.
@Suite(.serialized) struct GroupThreadTests {
  private func plane(_ log: EventLog) throws -> MediaPlane {
    let configuration = MediaPlaneConfiguration(
      addresses: [.init(bind: .loopback)], threads: 3, appPort: 0, trunkPorts: 45_300...45_399)
    return try MediaPlane(configuration: configuration, identity: try DTLSIdentity()) { log.append($0) }
  }

  @Test func `a call that rings for several users is where the first of them has calls, and the next ones of each are there too`()
    throws
  {
    let log = EventLog()
    let plane = try plane(log)
    defer { plane.stop() }
    var number: UInt64 = 0
    func reserve(_ user: String, _ others: [String] = []) throws -> Int {
      number += 1
      return try plane.reserve(session: MediaSessionID(raw: number), user: user, others: others, toward: nil).thread
    }
    let bobs = try reserve("bob")
    let shared = try reserve("alice", ["alice", "bob", "carol"])
    #expect(shared == bobs)
    for user in ["alice", "bob", "carol"] { #expect(try reserve(user) == shared) }
    // two users with calls on different threads cannot both keep theirs: the first user's thread is used
    let daves = try reserve("dave")
    #expect(try daves != shared && reserve("dave", ["carol"]) == daves)
    #expect(try reserve("carol") == shared)
    // a user without a call is bound to no thread: the thread with the most room is used, so that all get sessions
    for raw in 1...number { plane.send(.close(MediaSessionID(raw: raw))) }
    let threads = Set(try (0..<30).map { try reserve("user\($0)") })
    #expect(threads.count == 3)
  }

  @Test func `groups that change while their calls come and go leave nothing behind`() throws {
    let log = EventLog()
    let plane = try plane(log)
    let ids = (1...6).map { MediaSessionID(raw: UInt64($0)) }
    for id in ids { _ = try plane.reserve(session: id, user: "alice", toward: nil) }
    for (index, id) in ids.enumerated() { plane.send(.group(id, MediaGroupID(raw: UInt64(index % 2)))) }
    for id in ids { plane.send(.group(id, MediaGroupID(raw: 7))) }
    // six sessions join a group of at most five: the sixth receives its app alone
    plane.send(.group(ids[0], nil))
    plane.send(.group(ids[0], nil))
    for id in ids.dropFirst(2) { plane.send(.close(id)) }
    let areClosed = drive { log.all.count { if case .closed = $0 { true } else { false } } == 4 }
    #expect(areClosed && plane.metrics.sessions.value == 2)
    plane.stop()
    #expect(plane.metrics.sessions.value == 0)
  }
}
