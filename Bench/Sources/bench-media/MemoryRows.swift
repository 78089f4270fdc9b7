import BenchKit
import CMallocCount
import TrunklineAudioCodecs
import TrunklineMediaSession
import TrunklineRTP

/// Heap memory that a session holds after it has run for a second: the media of a call, without the memory of control, DTLS and
/// the kernel.
enum MemoryRows {
  private static let sessions = 20

  static func add(to bench: Bench) throws {
    let rows: [(String, AudioEncoding, AudioBand)] = [
      ("narrowband, PCMU ↔ Opus", .pcmu, .narrowband), ("wideband, G722 ↔ Opus", .g722, .wideband),
    ]
    for (name, trunk, band) in rows {
      let row = "memory of a session, \(name)"
      guard bench.wants(row), bench.counted == nil else { continue }
      let plan = SessionBench.Plan(
        trunk: trunk, fromTrunk: try Speech.packets(trunk, band, count: 50), fromApp: try Speech.packets(.opus, band, count: 50))
      bench.add(
        BenchRow(
          row, unit: "KB", ours: BenchFigure("ours", try octets(plan) / 1_024), goal: .atMost(190), note: "heap, without sockets"
        ))
    }
  }

  /// Octets of one session.
  private static func octets(_ plan: SessionBench.Plan) throws -> Double {
    let room = UnsafeMutablePointer<SessionBench>.allocate(capacity: sessions)
    defer { room.deallocate() }
    // The first session of all also pays for the one-time setup of OpenSSL and libopus.
    try room.initialize(to: talked(plan))
    room.deinitialize(count: 1)
    let before = malloc_in_use()
    for index in 0..<sessions { try (room + index).initialize(to: talked(plan)) }
    let taken = malloc_in_use() - before
    room.deinitialize(count: sessions)
    return Double(taken) / Double(sessions) - outputOctets()
  }

  /// A media thread has one output for all its sessions; here each session has its own.
  private static func outputOctets() -> Double {
    let before = malloc_in_use()
    let output = MediaOutput()
    return withExtendedLifetime(output) { Double(malloc_in_use() - before) }
  }

  private static func talked(_ plan: SessionBench.Plan) throws -> SessionBench {
    var call = try SessionBench.make(plan, packets: 50)
    for _ in 0..<50 { _ = call.step() }
    guard call.sent > 80 else { throw BenchError(text: "memory of a session: \(call.sent) packets only") }
    call.forget()
    return call
  }
}
