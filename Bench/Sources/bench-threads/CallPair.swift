import BenchKit
import CBenchNet
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP
import TrunklineSRTP

/// Both far ends of one call: a carrier's RTP end and an app's SRTP end, on loopback. They protect and count; nothing is decoded.
final class CallPair {
  let trunk: Int32, app: Int32
  let trunkPort: UInt16, appPort: UInt16
  /// Where their packets go: the gateway's two ports.
  var trunkRemote: UInt16 = 0, appRemote: UInt16 = 0
  var appPayloadType: UInt8 = 0
  /// PCMU or G.722, which have the same clock.
  let trunkEncoding: AudioEncoding
  var sender: SRTPSender?
  var receiver: SRTPReceiver?
  var toApp = Received(), toTrunk = Received()
  var sentByTrunk = 0, sentByApp = 0
  private var sequence: UInt16 = 1
  private var timestamp: UInt32 = 0
  private var position: Int

  /// What arrived at one end.
  struct Received {
    var count = 0
    /// Transit of each packet in ns: of relayed ones since they were sent, else on its own RTP clock.
    var transits: [Int64] = []
    var first: (stamp: Int64, timestamp: UInt32)?
  }

  init(_ number: Int, trunk encoding: AudioEncoding = .pcmu) throws {
    trunkEncoding = encoding
    var ports: (UInt16, UInt16) = (0, 0)
    (trunk, app) = (bn_udp(&ports.0), bn_udp(&ports.1))
    guard trunk >= 0, app >= 0 else { throw BenchError(text: "a socket for call \(number): errno \(-min(trunk, app))") }
    (trunkPort, appPort) = ports
    position = number * 37
  }

  deinit {
    bn_close(trunk)
    bn_close(app)
  }

  /// 20 ms of both. With `stamps` the payloads begin with the time they were sent at.
  func speak(_ material: CallMaterial, _ room: UnsafeMutableRawBufferPointer) {
    let frame = position % material.trunk.count
    defer {
      sequence &+= 1
      timestamp &+= 160
      position += 1
    }
    var count = write(room, trunkEncoding.row.payloadType, material.trunk[frame], units: timestamp)
    if material.stamps { stamp(room) }
    if bn_send(trunk, room.baseAddress, count, trunkRemote) == count { sentByTrunk += 1 }
    count = write(room, appPayloadType, material.app[frame], units: timestamp &* (appPayloadType == 0 ? 1 : 6))
    if material.stamps { stamp(room) }
    guard (try? sender?.protect(room, count: &count)) != nil else { return }
    if bn_send(app, room.baseAddress, count, appRemote) == count { sentByApp += 1 }
  }

  private func write(_ room: UnsafeMutableRawBufferPointer, _ payloadType: UInt8, _ payload: [UInt8], units: UInt32) -> Int {
    let header = RTPHeader(
      payloadType: payloadType, marker: false, sequence: SequenceNumber(raw: sequence), timestamp: RTPTimestamp(raw: units),
      ssrc: SSRC(raw: 0x1000 + UInt32(trunkPort)))
    let start = UnsafeMutableRawBufferPointer(rebasing: room[..<12])
    var span = MutableSpan<UInt8>(_unsafeElements: start.bindMemory(to: UInt8.self))
    _ = header.write(into: &span)
    UnsafeMutableRawBufferPointer(rebasing: room[12...]).copyBytes(from: payload)
    return 12 + payload.count
  }

  private func stamp(_ room: UnsafeMutableRawBufferPointer) {
    room.storeBytes(of: bn_realtime(), toByteOffset: 12, as: Int64.self)
  }

  /// Everything that waits at one end.
  func receive(atApp: Bool, _ material: CallMaterial, counting: Bool, _ room: UnsafeMutableRawBufferPointer) {
    var stamp: Int64 = 0
    var from: UInt16 = 0
    while true {
      var count = bn_receive(atApp ? app : trunk, room.baseAddress, room.count, &stamp, &from)
      guard count > 0 else { return }
      guard counting, count > 20, room[0] & 0xc0 == 0x80, !(64...95).contains(room[1] & 0x7f) else { continue }
      if atApp, material.stamps {
        let packet = UnsafeMutableRawBufferPointer(rebasing: room[..<count])
        guard (try? receiver?.unprotect(packet, count: &count)) != nil else { continue }
      }
      let timestamp = UInt32(bigEndian: room.loadUnaligned(fromByteOffset: 4, as: UInt32.self))
      let transit: Int64
      if material.stamps {
        transit = stamp - room.loadUnaligned(fromByteOffset: 12, as: Int64.self)
      } else {
        let nanosecondsPerUnit = atApp && appPayloadType != 0 ? 1e9 / 48_000 : 1e9 / 8_000
        let first = (atApp ? toApp : toTrunk).first ?? (stamp, timestamp)
        let units = Int64(Int32(bitPattern: timestamp &- first.timestamp))
        transit = stamp - first.stamp - Int64(Double(units) * nanosecondsPerUnit)
        if atApp { toApp.first = first } else { toTrunk.first = first }
      }
      if atApp {
        toApp.count += 1
        toApp.transits.append(transit)
      } else {
        toTrunk.count += 1
        toTrunk.transits.append(transit)
      }
    }
  }
}

/// What all calls of a run say, 20 ms a frame.
struct CallMaterial {
  var trunk: [[UInt8]]
  var app: [[UInt8]]
  /// Relayed payloads may carry the time they were sent at.
  var stamps: Bool
  var trunkEncoding = AudioEncoding.pcmu
}
