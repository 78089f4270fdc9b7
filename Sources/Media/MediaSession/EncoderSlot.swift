import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

/// A direction's encoder while it is needed. It is made at commands, never per packet.
///
/// | input | without an encoder | with one |
/// |---|---|---|
/// | `make` | made | same |
/// | `encode` | 0 octets | the frame's octets; 0 after an error |
/// | `setBand`, `limitComplexity`, `reported` | – | passed on |
/// | `free` | – | none |
struct EncoderSlot: ~Copyable {
  private var encoder: AudioEncoder?

  init() {}

  var isEmpty: Bool { encoder == nil }
  var encoding: AudioEncoding? { mutating get { encoder?.encoding } }

  /// libopus only refuses invalid parameters, and ours are constant.
  /// - Parameter ceiling: the complexity that the thread has time for.
  mutating func make(_ encoding: AudioEncoding, _ band: AudioBand, _ preferences: OpusPreferences, complexity: Int, ceiling: Int)
  {
    guard encoder == nil else { return }
    do throws(OpusError) {
      var made = try AudioEncoder(
        encoding: encoding, band: band, control: preferences.control(band), complexity: complexity,
        isConstantRate: preferences.isConstantRate)
      made.limitComplexity(to: ceiling)
      encoder = consume made
    } catch {}
  }

  mutating func free() { if encoder != nil { encoder = nil } }

  /// libopus only refuses invalid parameters, and ours are constant.
  mutating func setBand(_ band: AudioBand) { do throws(OpusError) { try encoder?.setBand(band) } catch {} }

  mutating func limitComplexity(to ceiling: Int) { encoder?.limitComplexity(to: ceiling) }

  /// The loss that the receiver of our packets reports.
  mutating func reported(lossFraction: Double, roundTripMilliseconds: Double?, at now: Instant) {
    encoder?.reported(lossFraction: lossFraction, roundTripMilliseconds: roundTripMilliseconds, at: now)
  }

  /// Encodes `count` samples and returns the octets of payload. HOT
  @inline(__always) mutating func encode(
    _ samples: UnsafePointer<Int16>, _ count: Int, into room: UnsafeMutableRawBufferPointer
  ) -> Int {
    var payload = MutableSpan<UInt8>(_unsafeElements: room.bindMemory(to: UInt8.self))
    let samples = Span<Int16>(_unsafeStart: samples, count: count)
    do throws(OpusError) { return try encoder?.encode(samples, into: &payload) ?? 0 } catch { return 0 }
  }
}
