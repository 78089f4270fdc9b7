import BenchKit
import Glibc
import TrunklineBytes

/// A recorded or made network: for each packet when it was sent and when it came, in milliseconds; nil when it was lost.
struct Trace {
  /// Of an RTP packet of voice.
  static let frames = [10, 20, 30, 40, 60]

  /// The sender sent nothing before this packet (DTX, a held call): samples at 8 kHz.
  typealias Pause = (before: Int, samples: Int)

  var name: String
  let packets: [(sent: Double, arrived: Double?)]
  /// Audio in each packet.
  let frameMilliseconds: Int
  let pauses: [Pause]
  /// Where each packet's audio begins, in samples at 8 kHz.
  let timestamps: [Int]
  var samplesPerPacket: Int { 8 * frameMilliseconds }

  /// - Parameter packets: in the order of their send times. Those that are not sent when the ones before have been said are after a pause.
  init(name: String, packets: [(sent: Double, arrived: Double?)], frameMilliseconds: Int = 20) {
    (self.name, self.packets, self.frameMilliseconds) = (name, packets, frameMilliseconds)
    let frame = Double(frameMilliseconds)
    var pauses: [Pause] = []
    var timestamps: [Int] = []
    // Senders send two at a time, or a little sooner by their clock than by the trace's.
    var (timestamp, due) = (0, packets.first?.sent ?? 0)
    for (number, packet) in packets.enumerated() {
      let missing = packet.sent - due
      if missing > frame / 2 {
        let samples = Int((missing * 8).rounded())
        pauses.append((number, samples))
        timestamp += samples
      }
      timestamps.append(timestamp)
      timestamp += 8 * frameMilliseconds
      due = max(packet.sent, min(due, packet.sent + 2 * frame)) + frame
    }
    (self.pauses, self.timestamps) = (pauses, timestamps)
  }

  func sent(_ number: Int) -> ReplayPacket {
    let begins = number == 0 || timestamps[number] > timestamps[number - 1] + samplesPerPacket
    return ReplayPacket(number: number, timestamp: timestamps[number], marker: begins)
  }

  /// The packet whose audio this sample is; nil in a pause.
  func packet(at sample: Int) -> Int? {
    var (low, high) = (0, timestamps.count)
    while low < high {
      let middle = (low + high) / 2
      if timestamps[middle] <= sample { low = middle + 1 } else { high = middle }
    }
    guard low > 0, sample < timestamps[low - 1] + samplesPerPacket else { return nil }
    return low - 1
  }
}
