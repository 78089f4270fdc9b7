import AudioCodecs
import BenchKit
import JitterBuffer

struct JitterOptions {
  var traces: [String] = []
  var encoding = AudioEncoding.pcmu
  var policy = DelayPolicy()
  var peers = true
  var wantsHelp = false
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
      case "--opus-fec": encoding = .opus
      case "--no-peers": peers = false
      case "--help", "-h": wantsHelp = true
      case "--kinds": kinds = Int(min(1000, max(1, try number(argument))))
      case "--write": directory = try value(argument)
      case "--loss-cost": policy.lossCost = Float(try number(argument))
      case "--memory": policy.memoryPackets = Float(try number(argument))
      case "--patience": policy.patienceMilliseconds = Int64(try number(argument))
      case "--shrink-margin": policy.shrinkMarginMilliseconds = Int64(try number(argument))
      default: throw BenchError(text: "unknown option \(argument); see --help")
      }
    }
  }

  /// Points of our curve in the trade-off's pictures.
  static let policies: [DelayPolicy] = ([5, 10, 20, 40, 80, 160] as [Float]).map { cost in
    var policy = DelayPolicy()
    policy.lossCost = cost
    return policy
  }

  static let help = """
    bench-jitter: the jitter buffer's cost, and its trade-off of delay against missing audio, beside other people's.

      bench-jitter                           cost, and the trade-off on networks made here
      bench-jitter --trace FILE.csv          replays a network through ours and the peers
      bench-jitter --trace FILE.csv --json   prints one JSON object and nothing else
      bench-jitter --kinds 8                 ten kinds of networks made here, eight of each, through ours and NetEQ; --write DIR keeps
                                             them as traces

    A trace has a row `send_ms,arrival_ms` per 20 ms packet, `send_ms,lost` for a lost one. Speech is sent as PCMU (or with
    --opus-fec as Opus with in-band FEC at 8 kHz); ours is pulled every 20 ms, a millisecond sooner or later where it asks a media thread
    for that; NetEQ every 10 ms. --no-peers leaves the peers out. Policy: --loss-cost, --memory, --patience, --shrink-margin.

    lost_pct        packets of the trace that never came, of all packets
    late_pct        packets that came but were not played: they came after newer audio had been heard, or were thrown away; of all
                    packets
    concealed_pct   output made up because audio was missing when needed, silence after it included, of all output from the first
                    sample heard to the trace's end; not what was repaired from a copy (FEC), stretched or blended
    mean_delay_ms   from send to play-out of each sample of the source that was heard: the time it is played less the send time of its
                    packet and its place in it; p95_delay_ms is the 95th percentile of the same
    max_gap_ms      the longest stretch of output, concealed in part at least, without a sample of the source
    stretches       pulls in which audio was shortened or lengthened; stretched_pct is the sum of samples taken out and put in, of all
                    output
    altered_pct     output that is no exact copy of a source sample: concealed, repaired, stretched or blended
    above_fastest_ms  mean_delay_ms less the fastest packet's
    fixed_delay_ms  the best constant delay chosen with hindsight that leaves no more missing than concealed_pct
    ratio_to_fixed  above_fastest_ms by the same of the fixed delay

    With PCMU every figure but the counts of concealed and stretched samples comes from the output itself: the source is made so that
    3 ms of it are found again exactly. With Opus the receivers' own clocks and counters are believed.
    """
}
