import CHeap
import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP
import TrunklineSRTP

@testable import TrunklineMediaSession

/// What a call's session takes of the heap, by malloc's own books: in a process of its own, where nothing else allocates.
@Suite struct SessionMemoryTests {
  @Test func `a relayed call takes 18 KB, however its first words went`() async {
    await #expect(processExitsWith: .success) {
      for keeps in [false, true] {
        let bytes = try heldByCall(app: .pcmu, keeps: keeps) { $0.uplink.relay.isOn && $0.downlink.relay.isOn }
        #expect(bytes < 18_000, "\(bytes)")
      }
    }
  }

  @Test func `a transcoded call takes 180 KB`() async {
    await #expect(processExitsWith: .success) {
      let bytes = try heldByCall(app: .opus, keeps: true) { !$0.uplink.relay.isOn && !$0.downlink.relay.isOn }
      #expect(bytes < 180_000, "\(bytes)")
    }
  }
}

/// Bytes of one of 20 sessions after half a second of talk and half a second of a pause, `MediaSession` itself included.
private func heldByCall(app: AudioEncoding, keeps: Bool, _ isSettled: (borrowing MediaSession) -> Bool) throws -> Int {
  let calls = 20
  let sessions = UnsafeMutablePointer<MediaSession>.allocate(capacity: calls)
  defer { sessions.deallocate() }
  // The first of all takes what OpenSSL and libopus set up once.
  try sessions.initialize(to: talked(app, keeps))
  sessions.deinitialize(count: 1)
  let before = Int(heap_in_use())
  for index in 0..<calls {
    try (sessions + index).initialize(to: talked(app, keeps))
    let settled = isSettled(sessions[index])
    #expect(settled)
  }
  let bytes = (Int(heap_in_use()) - before) / calls
  for index in 0..<calls { (sessions + index).deinitialize(count: 1) }
  return bytes + MemoryLayout<MediaSession>.size
}

private func talked(_ app: AudioEncoding, _ keeps: Bool) throws -> MediaSession {
  var bench = try Bench(app: app)
  bench.connect(keeps: keeps)
  try bench.run(frames: 10, trunk: { tone($0) }, app: { tone($0) })
  bench.command(.playoutActive(Bench.id))
  try bench.run(frames: 25, trunk: { tone($0) }, app: { tone($0) })
  try bench.run(frames: 200, trunk: { _ in quiet }, app: { _ in quiet })
  return bench.session
}
