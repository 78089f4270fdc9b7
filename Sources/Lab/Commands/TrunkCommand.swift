import ArgumentParser
import CommandSupport
import Peers
import TrunklineBytes
import TrunklineRTP
import TrunklineSDP
import TrunklineSIPDialogs

/// `trunkline-lab trunk`: a simulated carrier.
struct TrunkCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "trunk", abstract: "A simulated carrier: places calls into a gateway or answers the calls it sends.",
    discussion: """
      Plays a built-in sentence or a WAV file, records the received audio, plays digits (RFC 4733), and simulates a bad network.
      Ends with status 0 only if its calls were answered.

      EXAMPLES:
        trunkline-lab trunk --call +15551230001 --talk 5 --record heard.wav
        trunkline-lab trunk --listen 127.0.0.1:5080 --calls 1 --answer-after 2
        trunkline-lab trunk --call +15551230001 --loss 3 --jitter 40 --digits 12#
        trunkline-lab trunk --call +15551230001 --calls 20 --gap 0.3 --talk 1
        trunkline-lab trunk --refuse 486
        trunkline-lab trunk --call +15551230001 --talk 5 --srtp required
      """)

  struct Codec: ExpressibleByArgument {
    let encoding: AudioEncoding
    static let all = AudioEncoding.allCases.filter(\.row.isStateless)
    static var allValueStrings: [String] { all.map(\.name) }
    init(_ encoding: AudioEncoding) { self.encoding = encoding }
    init?(argument: String) {
      guard let encoding = AudioEncoding(named: argument), Self.all.contains(encoding) else { return nil }
      self.encoding = encoding
    }
    var defaultValueDescription: String { encoding.name }
  }
  enum Transport: String, ExpressibleByArgument, CaseIterable { case udp, tcp }

  @Option(help: "Where this carrier's SIP listens, UDP and TCP.") var listen = SocketAddress(.loopback, 5080)
  @Option(help: "The gateway's SIP address.") var gateway = SocketAddress(.loopback, 5060)
  @Option(help: "Transport of the calls it places.") var transport = Transport.udp
  @Option(help: ArgumentHelp("Places a call to this number; without it calls are answered.", valueName: "number")) var call:
    String?
  @Option(help: "The caller's number.") var from = "+15557770001"
  @Option(help: ArgumentHelp("Codecs in order of preference.", valueName: "codec")) var codec = [Codec(.pcmu), Codec(.pcma)]
  @Option(help: ArgumentHelp("Hangs up so long after the answer.", valueName: "seconds")) var talk: Double?
  @Option(help: ArgumentHelp("Rings so long before it answers.", valueName: "seconds")) var answerAfter = 0.0
  @Flag(help: "Sends early media: 183 with SDP instead of 180.") var early = false
  @Option(help: ArgumentHelp("Refuses calls with this SIP code.", valueName: "code")) var refuse: Int?
  @Option(help: "Digits to play once connected.") var digits = ""
  @Option(help: ArgumentHelp("Ends after so many calls; those it places follow each other.", valueName: "n")) var calls: Int?
  @Option(help: ArgumentHelp("The pause between the calls that it places.", valueName: "seconds")) var gap = 0.0
  @Option(help: ArgumentHelp("Loses so much of the RTP it sends.", valueName: "percent")) var loss = 0.0
  @Option(help: ArgumentHelp("Delays each RTP packet by 0 to so much.", valueName: "ms")) var jitter = 0.0
  @Option(help: ArgumentHelp("Sends so many RTP packets after the next one.", valueName: "percent")) var reorder = 0.0
  @Option(help: "User name for a digest challenge.") var username: String?
  @Option(help: "Password for a digest challenge.") var password: String?
  @Option(
    help: ArgumentHelp(
      "SRTP with keys in the SDP; its keys go over UDP and TCP, as srtp_without_tls lets the gateway's.", valueName: "rule"))
  var srtp = SimulatedCarrier.SRTPRule.off
  @OptionGroup var peer: PeerOptions

  func validate() throws {
    guard (0...100).contains(loss), (0...100).contains(reorder) else {
      throw ValidationError("--loss and --reorder are percentages, 0 to 100")
    }
    if let refuse, !(300...699).contains(refuse) { throw ValidationError("--refuse must be a code from 300 to 699") }
    if digits.contains(where: { !"0123456789*#ABCD".contains($0) }) { throw ValidationError("--digits must be of 0-9 * # A-D") }
  }

  func run() throws {
    var options = SimulatedCarrier.Options()
    options.listen = listen
    options.gateway = gateway
    options.call = call
    options.from = from
    options.transport = transport == .udp ? .udp : .tcp
    options.codecs = codec.map(\.encoding)
    options.gap = .seconds(gap)
    options.talk = talk.map { .seconds($0) }
    options.answerAfter = .seconds(answerAfter)
    options.isEarly = early
    options.refuse = refuse
    options.digits = digits
    options.calls = calls
    options.lossPercent = loss
    options.jitterMilliseconds = jitter
    options.reorderPercent = reorder
    if let username { options.credentials = Credentials(username: username, password: password ?? "") }
    options.srtp = srtp
    (options.samples, options.repeats) = (try peer.samples(), peer.repeats)

    let peer = peer
    let carrier: SimulatedCarrier
    do {
      carrier = try SimulatedCarrier(options) { peer.report($0) }
    } catch {
      throw ValidationError("\(error)")
    }
    let signals = StopSignal { carrier.stop() }
    defer { withExtendedLifetime(signals) {} }
    carrier.run()
    for (number, report) in carrier.reports.enumerated() { try peer.write(report.heard, number: number) }
    let answered = carrier.reports.filter(\.wasAnswered).count
    if answered < carrier.reports.count || (call != nil && answered == 0) { throw ExitCode(1) }
  }
}

extension SimulatedCarrier.SRTPRule: ExpressibleByArgument {}
