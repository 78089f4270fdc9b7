import TrunklineBytes
import TrunklineRTP

// The one file that writes packets into a batch's slots. Invariant: `room` has `OutgoingBatch.slotBytes` bytes, and a payload at
// most
// `Limits.packetBytes`, so that header, payload and tag always fit.

/// Header and payload; the packet's length. HOT
@inline(__always)
func writeRTP(
  _ room: UnsafeMutableRawBufferPointer, payloadType: UInt8, _ stamp: OutgoingStream.Stamp, ssrc: UInt32,
  payload: UnsafeRawBufferPointer
) -> Int {
  guard let base = room.baseAddress, let source = payload.baseAddress, payload.count <= Limits.packetBytes else { return 0 }
  writeHeader(base, payloadType: payloadType, stamp: stamp, ssrc: ssrc)
  (base + headerBytes).copyMemory(from: source, byteCount: payload.count)
  return headerBytes &+ payload.count
}

/// The header alone; the payload is already behind it. HOT
@inline(__always)
func writeHeader(_ base: UnsafeMutableRawPointer, payloadType: UInt8, stamp: OutgoingStream.Stamp, ssrc: UInt32) {
  base.storeBytes(of: 0x80, as: UInt8.self)
  base.storeBytes(of: (stamp.marker ? 0x80 : 0) | payloadType & 0x7f, toByteOffset: 1, as: UInt8.self)
  base.storeBytes(of: stamp.sequence.bigEndian, toByteOffset: 2, as: UInt16.self)
  base.storeBytes(of: stamp.timestamp.bigEndian, toByteOffset: 4, as: UInt32.self)
  base.storeBytes(of: ssrc.bigEndian, toByteOffset: 8, as: UInt32.self)
}

func writeEvent(
  _ room: UnsafeMutableRawBufferPointer, payloadType: UInt8, _ stamp: OutgoingStream.Stamp, ssrc: UInt32, _ event: TelephoneEvent
) -> Int {
  guard let base = room.baseAddress else { return 0 }
  writeHeader(base, payloadType: payloadType, stamp: stamp, ssrc: ssrc)
  let octets = (base + headerBytes).assumingMemoryBound(to: UInt8.self)
  var payload = MutableSpan(_unsafeStart: octets, count: TelephoneEvent.length)
  guard let count = event.write(into: &payload) else { return 0 }
  return headerBytes + count
}

/// A plain RTP header, without CSRC and extension.
let headerBytes = 12
