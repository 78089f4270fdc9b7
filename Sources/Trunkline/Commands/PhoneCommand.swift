import ArgumentParser
import Bytes
import Peers

/// `trunkline phone`: an app client.
struct PhoneCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "phone", abstract: "An app client: logs in, answers or places a call with ICE, DTLS-SRTP and Opus.",
    discussion: """
      Speaks a built-in sentence or a WAV file and records what it hears. Ends with status 0 only if its calls connected.

      EXAMPLES:
        trunkline phone --answer --token "$(trunkline token --user alice --device desk)" --device desk
        trunkline phone --call +15557770001 --token-file alice.jwt --device desk --talk 5 --record heard.wav
      """)

  @Option(help: "The gateway's WebSocket address.") var url = "ws://127.0.0.1:8080/v1/connect"
  @Option(help: "Login token, as `trunkline token` prints it.") var token: String?
  @Option(help: ArgumentHelp("Reads the token from a file.", valueName: "file")) var tokenFile: String?
  @Option(help: "This device's id: the token's dev.") var device = "phone"
  @Flag(help: "Answers incoming calls.") var answer = false
  @Option(help: ArgumentHelp("Rings so long before it answers.", valueName: "seconds")) var answerAfter = 0.0
  @Option(help: ArgumentHelp("Calls this number.", valueName: "number")) var call: String?
  @Option(help: "The caller's number, one of the user's; the first by default.") var from: String?
  @Option(help: ArgumentHelp("Hangs up so long after the call is connected.", valueName: "seconds")) var talk: Double?
  @Option(help: "Digits to send once connected.") var digits = ""
  @Option(help: ArgumentHelp("Ends after so many calls.", valueName: "n")) var calls: Int?
  @Flag(help: "Takes any TLS certificate: for tests.") var insecure = false
  @OptionGroup var peer: PeerOptions

  func validate() throws {
    if token == nil, tokenFile == nil {
      throw ValidationError("--token or --token-file is needed; make one with: trunkline token --user USER --device \(device)")
    }
    if digits.contains(where: { !"0123456789*#ABCD".contains($0) }) { throw ValidationError("--digits takes 0-9 * # A-D") }
  }

  func run() throws {
    var options = AppPhone.Options()
    (options.url, options.device, options.call, options.from) = (url, device, call, from)
    options.token = try token ?? peer.text(ofFile: tokenFile ?? "", option: "--token-file")
    options.answerAfter = answer ? .seconds(answerAfter) : nil
    (options.talk, options.digits, options.calls, options.isInsecure) = (talk.map { .seconds($0) }, digits, calls, insecure)
    (options.samples, options.repeats) = (try peer.samples(), peer.repeats)

    let peer = peer
    let phone: AppPhone
    do {
      phone = try AppPhone(options) { peer.report($0) }
    } catch {
      throw ValidationError("\(error)")
    }
    let signals = StopSignal { phone.stop() }
    let refusal = phone.run()
    withExtendedLifetime(signals) {}
    for (number, report) in phone.reports.enumerated() { try peer.write(report.heard, number: number) }
    if let refusal { throw ValidationError(refusal) }
    if phone.reports.contains(where: { !$0.wasConnected }) || (call != nil && phone.reports.isEmpty) { throw ExitCode(1) }
  }
}
