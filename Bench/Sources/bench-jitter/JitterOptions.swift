import BenchKit
import TrunklineAudioCodecs
import TrunklineJitterBuffer
import TrunklineRTP

struct JitterOptions {
  var traces: [String] = []
  /// Audio in a packet of the traces; nil: as they show.
  var frameMilliseconds: Int?
  var encoding = AudioEncoding.pcmu
  var policy = DelayPolicy()
  var peers = true
  /// Seeds of each kind of network made here.
  var kinds = 0
  var directory: String?

  init(_ arguments: [String]) throws {
    var rest = arguments[...]
    func value(_ name: String) throws -> String {
      guard let value = rest.popFirst() else { throw BenchError(text: "\(name) wants a value; see --help") }
      return value
    }
    func number(_ name: String) throws -> Double {
      let text = try value(name)
      guard let number = Double(text), number.isFinite else { throw BenchError(text: "\(name) wants a number, not \(text)") }
      return number
    }
    while let argument = rest.popFirst() {
      switch argument {
      case "--trace": traces.append(try value(argument))
      case "--frame":
        let frame = Int(min(1000, max(0, try number(argument))))
        guard Trace.frames.contains(frame) else { throw BenchError(text: "--frame wants 10, 20, 30, 40 or 60 milliseconds") }
        frameMilliseconds = frame
      case "--opus-fec": encoding = .opus
      case "--no-peers": peers = false
      case "--kinds": kinds = Int(min(1000, max(1, try number(argument))))
      case "--write": directory = try value(argument)
      case "--delay-price": policy.delayPrice = Float(try number(argument))
      case "--memory": policy.memoryPackets = Float(try number(argument))
      case "--patience": policy.excessToleranceMilliseconds = Int64(try number(argument))
      case "--shrink-margin": policy.shrinkMarginMilliseconds = Int64(try number(argument))
      default: throw BenchError(text: "unknown option \(argument); see --help")
      }
    }
  }

  /// Points of our curve in the trade-off's pictures.
  static let policies: [DelayPolicy] = ([0.3, 0.1, 0.03, 0.01, 0.005, 0.001] as [Float]).map { price in
    var policy = DelayPolicy()
    policy.delayPrice = price
    return policy
  }

  static let options = [
    BenchOption("--trace FILE.csv", "replays a network; rows send_ms,arrival_ms or send_ms,lost"),
    BenchOption("--frame MS", "with --trace: audio in a packet, 10 to 60; default: as far apart as most are sent"),
    BenchOption("--kinds N", "ten kinds of networks made here, N of each, through ours and NetEQ"),
    BenchOption("--write DIR", "with --kinds: keeps them as traces"),
    BenchOption("--opus-fec", "Opus with in-band FEC at 8 kHz, not PCMU"),
    BenchOption("--no-peers", "ours alone"),
    BenchOption("--delay-price R", "policy: what a millisecond costs beside G.107's Id"),
    BenchOption("--memory N", "policy: packets after which an observation counts 1/e"),
    BenchOption("--patience MS", "policy: spare delay from which a loss is used to shorten it"),
    BenchOption("--shrink-margin MS", "policy: what may be missing after audio was shortened"),
  ]

  static let about = """
    the jitter buffer's cost, and its trade-off of delay against missing audio, beside other people's.

    Without --trace and --kinds: cost, and the trade-off on networks made here. With --trace and --json: one JSON object and nothing else.
    Ours is pulled every 20 ms, a millisecond sooner or later where it asks a media thread for that; NetEQ every 10 ms. What the figures
    mean: Bench/README.md.
    """
}
