import ArgumentParser
import CommandSupport
import Foundation
import TrunklineBytes
import TrunklinePlatform

/// `trunkline-lab record-trace`: records how a network treats the packets of a call, as a file that `bench-jitter --trace`
/// replays.
struct RecordTraceCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "record-trace", abstract: "Records what a network does to the packets of a call, for bench-jitter --trace.",
    discussion: """
      Two ends: one sends packets of the size and at the rate of G.711, the other writes a row send_ms,arrival_ms for each, or
      send_ms,lost. Sending begins at once, and each packet has its time, so start the receiver first; it ends with the last packet, or 5 s
      after the newest. On one machine (namespaces, loopback) the delay is the real one. Between two machines it is unknown by how much
      their clocks differ: give the shortest delay with --fastest.

      EXAMPLES:
        trunkline-lab record-trace --receive 192.0.2.20:5004 --out lte.csv --fastest 30
        trunkline-lab record-trace --send 192.0.2.20:5004 --seconds 120
      """)

  @Option(help: ArgumentHelp("Sends to this end.", valueName: "address:port")) var send: String?
  @Option(help: ArgumentHelp("Receives here.", valueName: "address:port")) var receive: String?
  @Option(help: ArgumentHelp("The trace; standard output without.", valueName: "file")) var out: String?
  @Option(help: ArgumentHelp("How long is sent.", valueName: "s")) var seconds = 60
  @Option(help: ArgumentHelp("Audio in a packet: 10, 20, 30, 40 or 60.", valueName: "ms")) var packet = 20
  @Option(help: ArgumentHelp("The shortest delay, instead of the measured one.", valueName: "ms")) var fastest: Double?
  @Option(help: ArgumentHelp("Seconds to wait for the first packet.", valueName: "s")) var patience = 30

  func validate() throws {
    guard (send == nil) != (receive == nil) else { throw ValidationError("give --send at one end and --receive at the other") }
    for (name, value) in [("--send", send), ("--receive", receive)] {
      if let value, SocketAddress(value) == nil { throw ValidationError("\(name) \(value): no address:port") }
    }
    guard [10, 20, 30, 40, 60].contains(packet) else {
      throw ValidationError("--packet \(packet): 10, 20, 30, 40 or 60 milliseconds")
    }
    guard 1...3_600 ~= seconds else { throw ValidationError("--seconds \(seconds): 1 to 3600") }
    guard 1...3_600 ~= patience else { throw ValidationError("--patience \(patience): 1 to 3600") }
    if let fastest, !(0...10_000 ~= fastest) { throw ValidationError("--fastest \(fastest): 0 to 10000 milliseconds") }
  }

  func run() throws {
    if let address = send.flatMap({ SocketAddress($0) }) {
      let late = try TraceSender(packetMilliseconds: packet, count: seconds * 1_000 / packet).send(to: address)
      complain(
        "sent \(seconds * 1_000 / packet) packets"
          + (late > 0 ? ", \(late) of them more than 2 ms late: this machine is busy" : ""))
      return
    }
    guard let address = receive.flatMap({ SocketAddress($0) }) else { return }
    var recording = try TraceReceiver.record(at: address, patience: .seconds(patience))
    guard recording.received > 0 else {
      complain(
        "nothing came to \(address) within \(patience) s: start the other end with --send, and look whether UDP comes through")
      throw ExitCode(1)
    }
    if let fastest { recording.setFastest(milliseconds: fastest) }
    guard let least = recording.fastestMilliseconds, 0...60_000 ~= least else {
      complain("the clocks of both ends differ: give the shortest delay with --fastest")
      throw ExitCode(1)
    }
    try write(recording.csv)
    complain("\(recording.received) of \(recording.count) packets came, \(recording.refused) datagrams were none of them")
  }

  private func write(_ csv: String) throws {
    guard let out else { return print(csv, terminator: "") }
    do {
      try csv.write(toFile: out, atomically: true, encoding: .utf8)
    } catch {
      complain("\(out) cannot be written: \(error.localizedDescription)")
      throw ExitCode(1)
    }
  }
}
