import AppSessions
import JSONWebToken
import Testing
import TrunklineAppProtocol
import TrunklineAudioCodecs
import TrunklineMediaSession
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

/// Which calls are recorded, and which events and records report it.
@Suite struct RecordingTests {
  private func world(_ when: RecordingRules.When?, format: RecordingRules.Format = .ogg, notice: Announcement? = nil)
    -> Surroundings
  {
    let world = Surroundings { configuration, _ in
      configuration.recording = when.map { RecordingRules(when: $0, format: format, notice: notice) }
    }
    world.feed(.events(.init(isOn: true)))
    return world
  }
  private func started(_ world: Surroundings) -> [CallRecording] {
    world.recordings.compactMap { if case .start(let recording) = $0 { recording } else { nil } }
  }
  private func stopped(_ world: Surroundings) -> [String] {
    world.recordings.compactMap { if case .stop(let file, let end) = $0 { "\(file) \(end.rawValue)" } else { nil } }
  }
  private func report(_ recording: CallRecording, _ end: RecordingReport.End) -> RecordingReport {
    RecordingReport(recording.facts, file: recording.file, end: end, milliseconds: 4_000, bytes: 9_000, dropped: 2)
  }

  @Test func `on: a call is recorded from its connect to its end, the record names the file, an event tells that it is closed`()
    throws
  {
    let world = world(.on)
    let (leg, call) = try world.connected()
    let recording = try #require(started(world).first)
    #expect(started(world).count == 1 && recording.file == "\(call)-1.ogg" && recording.facts.call == call)
    #expect(world.mediaReceived.suffix(1) == ["tap"] || world.mediaReceived.contains("tap"))
    #expect(world.machine.calls[call]?.times[.recording] != nil)
    world.feed(.sip(.byeReceived(leg, nil)))
    #expect(stopped(world) == ["\(call)-1.ogg callEnded"])
    #expect(world.records.first?.recordings == ["\(call)-1.ogg"])
    world.events.removeAll()
    world.feed(.recorded(report(recording, .callEnded)))
    let event = try #require(world.events.first)
    guard case .call(let facts) = event.facts else { throw Failure(.server) }
    #expect(event.kind == .callRecorded && event.subject == call.description)
    #expect(
      facts.recording == .init(file: "\(call)-1.ogg", end: "callEnded", ms: 4_000, bytes: 9_000, droppedFrames: 2))
  }

  @Test(arguments: [nil, .off, .api] as [RecordingRules.When?])
  func `without the section, off and api: nothing is recorded by itself`(_ when: RecordingRules.When?) throws {
    let world = world(when)
    let (_, call) = try world.connected()
    #expect(world.recordings.isEmpty)
    let refusal = world.command(call, .record(true))
    #expect(refusal?.code == (when == .api ? nil : .unsupported))
    #expect(started(world).count == (when == .api ? 1 : 0))
  }

  @Test func `a program begins and ends recordings; each is a file of its own, and saying it twice changes nothing`() throws {
    let notice = Announcement(Recording([Int16](repeating: 1, count: 800)))
    let world = world(.api, format: .wav, notice: notice)
    let (_, ringing) = try Surroundings { configuration, _ in configuration.recording = RecordingRules() }.ringing()
    #expect(world.command(ringing, .record(true))?.code == .gone)
    let (_, call) = try world.connected()
    for _ in 0..<2 { #expect(world.command(call, .record(true)) == nil) }
    #expect(world.mediaReceived.suffix(2) == ["tap", "play 800"])
    for _ in 0..<2 { #expect(world.command(call, .record(false)) == nil) }
    #expect(world.mediaReceived.last == "no tap")
    #expect(world.command(call, .record(true)) == nil)
    #expect(started(world).map(\.file) == ["\(call)-1.wav", "\(call)-2.wav"])
    #expect(stopped(world) == ["\(call)-1.wav stopped"])
    for _ in 0..<Limits.recordingsPerCall { _ = (world.command(call, .record(false)), world.command(call, .record(true))) }
    #expect(world.command(call, .record(true))?.code == .tooMany)
    #expect(started(world).count == Limits.recordingsPerCall)
  }

  @Test func `an unanswered call is not recorded`() throws {
    let world = world(.api)
    let (_, call) = try world.ringing()
    #expect(world.command(call, .record(true))?.code == .badState && world.recordings.isEmpty)
  }

  @Test func `the user's setting and the claim of the token say whose calls are recorded`() throws {
    for isRecorded in [true, false] {
      let world = Surroundings { configuration, routing in
        configuration.recording = RecordingRules()
        routing.users[0].isRecorded = isRecorded
      }
      _ = try world.connected()
      #expect(started(world).count == (isRecorded ? 1 : 0))
    }
    var anyone = Routing.User(id: "", numbers: [])
    anyone.isRecorded = true
    var grant = TokenGrant()
    #expect(grant.user("x", anyone).isRecorded)
    grant.record = false
    #expect(!grant.user("x", anyone).isRecorded)
  }

  @Test func `a full disk ends the recording, not the call, and a program may try again`() throws {
    let world = world(.on)
    let (leg, call) = try world.connected()
    let recording = try #require(started(world).first)
    world.feed(.recorded(report(recording, .diskFull)))
    #expect(world.machine.summaries.first?.state == .connected && world.mediaReceived.last == "no tap")
    #expect(world.events.last?.kind == .callRecorded)
    // no recording is left to be stopped
    world.feed(.recorded(report(recording, .diskFull)))
    #expect(world.command(call, .record(true)) == nil)
    #expect(started(world).last?.file == "\(call)-2.ogg")
    world.feed(.sip(.byeReceived(leg, nil)))
    #expect(stopped(world) == ["\(call)-2.ogg callEnded"])
    #expect(world.records.first?.recordings == ["\(call)-1.ogg", "\(call)-2.ogg"])
  }
}
