import BenchKit
import CBenchNet
import Glibc
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP
import TrunklineSRTP

/// `bench-threads [--only relay|bridge|steps|handshakes|strangers]`: calls per core of the real media thread, beside rtpengine
/// where it is installed and bare libopus, and what handshakes do to running calls.
@main struct BenchThreads {
  nonisolated static func main() {
    Bench.main(
      "threads", about: "calls per core of the real media thread, beside rtpengine and bare libopus, and handshakes beside them."
    ) { bench in
      let cores = Cores()
      // On a shared machine the times would otherwise be those of the scheduler.
      if bn_hurry(2) != 0 { bench.progress("no permission for real-time scheduling: what else runs here is in the times") }
      if cores.measured == nil { bench.progress("one core only: the generator is on it as well, times of packets say little") }
      try RelayRows(bench, cores).run()
      try BridgeRows(bench, cores).run()
      try StepRows(bench, cores).run()
      try HandshakeRows(bench, cores).run()
      try StrangerRows(bench, cores).run()
    }
  }
}

/// A core for the measured thread and one for the generator.
struct Cores {
  var measured: Int32?
  var generator: Int32?
  /// The generator interrupts the measured thread, on one core, so that packets come in batches as they do at the limit. On two
  /// cores every packet would wake a sleeping thread, which at the limit never sleeps.
  var inBatches: Cores {
    var cores = self
    cores.generator = measured
    return cores
  }
  init() {
    var cpus = [Int32](repeating: 0, count: 256)
    guard bn_cores(&cpus, 256) >= 2 else { return }
    (measured, generator) = (cpus[1], cpus[0])
  }
}

/// The audio of the calls.
enum Material {
  /// 160 octets that begin with the time at which they are sent.
  static var relayed: CallMaterial {
    let frames = [[UInt8]](repeating: [UInt8](repeating: 0x55, count: 160), count: 50)
    return CallMaterial(trunk: frames, app: frames, stamps: true)
  }

  /// Speech without a pause: the frames of the demo speech that are not silent.
  static func talk() -> [[Int16]] {
    Speech.ticks().filter { tick in tick.reduce(0.0) { $0 + Double($1) * Double($1) } / 160 > 40_000 }
  }

  /// Speech without a pause at 16 kHz.
  static func wideTalk() -> [[Int16]] {
    Speech.ticks(.wideband).filter { tick in tick.reduce(0.0) { $0 + Double($1) * Double($1) } / 320 > 40_000 }
  }

  /// The same speech both ways: by G.711 and Opus, in wideband by G.722 and Opus.
  static func spoken(_ ticks: [[Int16]], _ band: AudioBand = .narrowband) throws -> CallMaterial {
    let bitrate = band == .wideband ? EncoderControl.plainWideBitrate : EncoderControl.plainBitrate
    var opus = try AudioEncoder(encoding: .opus, band: band, control: EncoderControl(bitrate: bitrate))
    let trunk = band == .wideband ? AudioEncoding.g722 : .pcmu
    var other = try AudioEncoder(encoding: trunk, band: band)
    func frames(_ encoder: inout AudioEncoder) throws -> [[UInt8]] {
      try ticks.map { tick in
        var room = [UInt8](repeating: 0, count: 1_275)
        var span = room.mutableSpan
        return Array(room[..<(try encoder.encode(tick.span, into: &span))])
      }
    }
    return CallMaterial(trunk: try frames(&other), app: try frames(&opus), stamps: false, trunkEncoding: trunk)
  }

  /// CPU nanoseconds of one 20 ms frame through a bare encoder and a bare decoder. The codecs of `calls` calls alternate, as on a
  /// media thread, where no codec's state stays in the first-level cache: the lower bound.
  static func bareOpus(_ ticks: [[Int16]], _ material: CallMaterial, calls: Int, frames: Int) throws -> Double {
    let codecs = try (0..<calls).map { _ in try BareCodecs(sampleRateHz: (ticks.first?.count ?? 160) * 50) }
    let start = cpuNanoseconds()
    for frame in 0..<frames {
      // Calls are at different positions of the speech.
      let (number, round) = (frame % calls, frame / calls)
      let index = (round + number * 7) % ticks.count
      try codecs[number].turn(ticks[index], material.app[index])
    }
    return Double(cpuNanoseconds() - start) / Double(frames)
  }
}

/// The codecs of one call.
private final class BareCodecs {
  private var encoder: OpusEncoder
  private var decoder: OpusDecoder
  private var packet = [UInt8](repeating: 0, count: 1_275)
  private var samples = [Int16](repeating: 0, count: 1_920)

  init(sampleRateHz: Int) throws {
    let bitrate = sampleRateHz > 8_000 ? EncoderControl.plainWideBitrate : EncoderControl.plainBitrate
    encoder = try OpusEncoder(sampleRateHz: sampleRateHz, bitrate: bitrate)
    decoder = try OpusDecoder(sampleRateHz: sampleRateHz)
  }

  func turn(_ tick: [Int16], _ coded: [UInt8]) throws {
    var room = packet.mutableSpan
    _ = try encoder.encode(tick.span, into: &room)
    var heard = samples.mutableSpan
    _ = try decoder.decode(coded.span, into: &heard)
  }
}
