import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines

/// A directory that comes in parts, from a gateway that may say anything.
@Suite struct PhoneDirectoryTests {
  private func rig(have: Int? = nil, _ version: Int = 9, caps: [String] = ["dir", "hist"]) -> PhoneRig {
    var rig = PhoneRig()
    rig.give(.followDirectory(have: have, of: nil))
    rig.give(.start)
    rig.give(.token("a.b.c"))
    _ = rig.welcome(dirVersion: version, caps: caps)
    return rig
  }
  private func asked(_ rig: PhoneRig) -> DirectoryGet? {
    for case .dirGet(let get) in rig.requests.map(\.message) { return get }
    return nil
  }
  private func ok(_ version: Int, from: Int? = nil, parts: Int, next: Int64? = nil) -> ServerMessage {
    .ok(Success(dir: DirectoryAnswer(version: version, from: from, parts: parts, next: next)))
  }
  /// Without an envelope's `re` a part would be malformed.
  private func receive(_ message: ServerMessage, _ rig: inout PhoneRig) -> [[DirectoryPart]] {
    rig.give(.socket(.frame(ServerFrame(message, re: PhoneRig.call(99)).encoded()))).directories
  }
  private func full(_ version: Int, _ number: Int64) -> ServerMessage {
    .dirFull(DirectoryPart(version: version, identify: [.init(number, "n")]))
  }

  @Test func `DIR-2: a new version is asked for, its parts are handed on together, and a change asks for the difference`() {
    var rig = rig()
    #expect(asked(rig) == DirectoryGet())
    rig.answer("dir.get", ok(9, parts: 2, next: 20))
    #expect(receive(full(9, 10), &rig) == [] && receive(full(9, 20), &rig) == [])
    #expect(asked(rig) == DirectoryGet(version: 9, after: 20), "the rest")
    rig.answer("dir.get", ok(9, parts: 1))
    let parts = receive(full(9, 30), &rig)
    #expect(parts.map { $0.map { $0.identify?.first?.n } } == [[10, 20, 30]])
    #expect(asked(rig) == nil)
    #expect(rig.receive(.dirChanged(DirectoryChanged(version: 9))).isEmpty, "it is here")
    rig.receive(.dirChanged(DirectoryChanged(version: 12)))
    #expect(asked(rig) == DirectoryGet(have: 9))
    rig.answer("dir.get", ok(12, from: 9, parts: 1))
    let delta = DirectoryPart(version: 12, from: 9, unblock: [5])
    #expect(receive(.dirDelta(delta), &rig) == [[delta]])
  }

  @Test func `where gateways share directories the version is of those that the device has: others are asked for, once`() {
    var rig = rig()
    rig.answer("dir.get", .ok(Success(dir: DirectoryAnswer(version: 9, of: "x", parts: 1))))
    #expect(receive(.dirFull(DirectoryPart(version: 9, of: "x", identify: [.init(1, "n")])), &rig).first?.first?.of == "x")
    rig.receive(.dirChanged(DirectoryChanged(version: 9, of: "x")))
    #expect(asked(rig) == nil)
    rig.receive(.dirChanged(DirectoryChanged(version: 9, of: "y")))
    #expect(asked(rig) == DirectoryGet(have: 9, of: "x"))
    rig.answer("dir.get", .ok(Success(dir: DirectoryAnswer(version: 11, of: "y", parts: 1))))
    #expect(receive(.dirFull(DirectoryPart(version: 11, of: "y", identify: [.init(2, "n")])), &rig).count == 1)
    #expect(asked(rig) == nil, "a version of its own, later than that of the directories")
  }

  @Test func `a version that is known, a gateway without directories, and a phone whose app wants none: nothing is asked`() {
    #expect(asked(rig(have: 9)) == nil)
    #expect(asked(rig(0)) == nil)
    #expect(asked(rig(caps: ["media.active"])) == nil)
    var other = PhoneRig()
    other.logIn()
    other.receive(.dirChanged(DirectoryChanged(version: 5)))
    #expect(asked(other) == nil)
  }

  @Test func `the directory changes between two answers: what was gathered is dropped, and nothing is mixed`() {
    var rig = rig()
    rig.answer("dir.get", ok(9, parts: 1, next: 10))
    _ = receive(full(9, 10), &rig)
    rig.answer("dir.get", ok(11, parts: 1))
    #expect(receive(full(9, 20), &rig) == [], "a part of the old version")
    let parts = receive(full(11, 15), &rig)
    #expect(parts.map { $0.map(\.version) } == [[11]])
  }

  @Test func `the socket breaks between an answer and its parts: all is asked again, and no half is handed on`() {
    var rig = rig()
    rig.answer("dir.get", ok(9, parts: 2))
    _ = receive(full(9, 10), &rig)
    rig.give(.socket(.socketClosed(1006)))
    _ = rig.wait(.seconds(2))
    _ = rig.welcome(dirVersion: 9, caps: ["dir"])
    #expect(asked(rig) == DirectoryGet())
    rig.answer("dir.get", ok(9, parts: 1))
    #expect(receive(full(9, 10), &rig).map(\.count) == [1])
  }

  @Test func `a refusal is asked again after its time, one for good never; parts nobody asked for are ignored`() {
    var rig = rig()
    #expect(receive(full(9, 10), &rig) == [])
    rig.answer("dir.get", .err(Failure(.overload, retryMs: 2_000)))
    #expect(asked(rig) == nil)
    _ = rig.wait(.milliseconds(1_900))
    #expect(asked(rig) == nil)
    _ = rig.wait(.milliseconds(200))
    #expect(asked(rig) == DirectoryGet())
    rig.answer("dir.get", .err(Failure(.unsupported)))
    _ = rig.wait(.seconds(60))
    rig.receive(.dirChanged(DirectoryChanged(version: 12)))
    #expect(asked(rig) == nil)
    var odd = self.rig()
    odd.answer("dir.get", .ok(Success()))
    #expect(receive(full(9, 10), &odd) == [])
    _ = odd.wait(.seconds(6))
    #expect(asked(odd) == DirectoryGet())
    odd.answer("dir.get", ok(9, parts: -4))
    #expect(asked(odd) == nil && receive(full(9, 10), &odd) == [])
  }

  @Test func `a read is answered once: by the gateway, or with nothing where the phone is not online`() {
    var rig = rig(have: 9)
    #expect(rig.give(.read(1, .histList(HistoryList()))).reads.isEmpty)
    let answered = rig.answer("hist.list", .ok(Success(hist: HistoryPage(calls: []))))
    #expect(answered.reads == ["1 []"])
    rig.give(.read(2, .histResolve(HistoryResolve(handles: ["+1"]))))
    #expect(rig.give(.socket(.socketClosed(4003))).reads == ["2 none"])
    #expect(rig.give(.read(3, .histList(HistoryList()))).reads == ["3 none"])
    var other = PhoneRig()
    #expect(other.give(.read(4, .histList(HistoryList()))).reads == ["4 none"])
    other.logIn()
    let received = other.receive(.histChanged(HistoryChanged(id: 7)))
    #expect(received.names == ["historyChanged"])
  }
}

extension [PhoneMachine.Action] {
  fileprivate var directories: [[DirectoryPart]] { compactMap { if case .directory(let parts) = $0 { parts } else { nil } } }
  fileprivate var reads: [String] {
    compactMap { action in
      guard case .read(let number, let result) = action else { return nil }
      let calls = (try? result?.get())?.hist?.calls
      return "\(number) " + (result == nil ? "none" : "\(calls ?? [])")
    }
  }
}
