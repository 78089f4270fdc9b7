import ArgumentParser
import CommandSupport
import Foundation
import Peers
import TrunklineBytes

/// `trunkline-lab phones`: many app clients in one process.
struct PhonesCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "phones", abstract: "Many app clients in one process, which ring, answer and hang up on command.",
    discussion: """
      Reads a JSON object a line for each phone: name, token, device, and answerAfter (seconds; without it the phone rings until a
      command). Prints a JSON object a line for what happens: online, ringing, connected, ended, offline, closed, each with the phone's name.
      Speech is PCMU, which the gateway relays. Orders come a line each on standard input, * is every phone; its end does not matter:

        answer NAME     hangup NAME     register NAME PUSH-TOKEN     push NAME JSON     status     stop

      EXAMPLES:
        trunkline-lab phones --phones phones.jsonl
        trunkline-lab phones --phones phones.jsonl --url ws://192.0.2.8:8080/v1/connect --media-address 192.0.2.20 --rate 200
      """)

  @Option(help: "The gateway's WebSocket address.") var url = "ws://127.0.0.1:8080/v1/connect"
  @Option(help: ArgumentHelp("A line for each phone.", valueName: "file")) var phones: String
  @Option(help: "Where the phones' media sockets are.") var mediaAddress = "127.0.0.1"
  @Option(help: ArgumentHelp("Sessions begun a second.", valueName: "n")) var rate = 100.0

  func validate() throws {
    guard rate > 0 else { throw ValidationError("--rate: a number above zero") }
    guard IPAddress(mediaAddress) != nil else { throw ValidationError("--media-address \(mediaAddress): no IP address") }
  }

  func run() throws {
    var options = PhoneFleet.Options()
    (options.url, options.members, options.loginsPerSecond) = (url, try members(), rate)
    if let address = IPAddress(mediaAddress) { options.mediaAddress = address }
    try Descriptors.allow(options.members.count * 2)
    let fleet: PhoneFleet
    do {
      fleet = try PhoneFleet(options) { Console.json($0.line) }
    } catch {
      throw ValidationError("\(error)")
    }
    let signals = StopSignal { fleet.stop() }
    defer { withExtendedLifetime(signals) {} }
    Thread.detachNewThread { while let line = readLine() { Self.perform(line, fleet) } }
    fleet.run()
  }

  private func members() throws -> [PhoneFleet.Member] {
    guard let text = try? String(contentsOfFile: phones, encoding: .utf8) else {
      throw ValidationError("--phones \(phones): cannot be read")
    }
    return try text.split(separator: "\n").enumerated().map { number, line in
      do {
        return try JSONDecoder().decode(PhoneFleet.Member.self, from: Data(line.utf8))
      } catch {
        throw ValidationError("--phones \(phones), line \(number + 1): no JSON object with name, token and device")
      }
    }
  }

  private static func perform(_ line: String, _ fleet: PhoneFleet) {
    let words = line.split(separator: " ", maxSplits: 2).map(String.init)
    switch (words.first, words.count) {
    case ("answer", 2): fleet.answer(words[1])
    case ("hangup", 2): fleet.hangUp(words[1])
    case ("register", 3): fleet.register(words[1], token: words[2])
    case ("push", 3): fleet.push(words[1], Array(words[2].utf8))
    case ("status", 1): fleet.reportStatus()
    case ("stop", 1): fleet.stop()
    default:
      complain("unknown: \(line); commands are answer NAME, hangup NAME, register NAME TOKEN, push NAME JSON, status, stop")
    }
  }
}
