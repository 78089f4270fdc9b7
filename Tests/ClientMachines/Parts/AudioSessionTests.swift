import Testing
import TrunklineAppProtocol
import TrunklineBytes

@testable import TrunklineClientMachines

/// The audio device's part alone; `Tests/Scenarios/HandsetAudioTests` has it in the machine.
@Suite struct AudioSessionTests {
  private var out: [PhoneMachine.Action] = []

  /// What was requested since the last call.
  private mutating func requests() -> [AudioRequest] {
    defer { out = [] }
    return out.audio
  }
  private mutating func listening(isActive: Bool = true) -> AudioSession {
    var audio = AudioSession()
    audio.configure(&out)
    if isActive { audio.activated(at: seconds(1), &out) }
    _ = audio.listen(to: id(1), mixing: [], at: seconds(1), &out)
    holds(requests() == (isActive ? [.configure, .start] : [.configure]))
    return audio
  }

  @Test mutating func `audio starts with the later of activation and call, once, and stops with the earlier end`() {
    var audio = listening()
    audio.activated(at: seconds(2), &out)
    holds(requests() == [])
    holds(audio.listen(to: nil, mixing: [], at: seconds(2), &out) == [id(1)] && requests() == [.stop])
    audio.deactivated(&out)
    holds(requests() == [] && audio.startsAt == nil)
    _ = audio.listen(to: id(1), mixing: [], at: seconds(3), &out)
    audio.activated(at: seconds(3), &out)
    holds(requests() == [.start] && audio.startsAt == nil)
    audio.deactivated(&out)
    audio.deactivated(&out)
    holds(requests() == [.stop])
  }

  @Test
  mutating func `without an activation audio starts a second after the first call that has it, and not if that call is held`() {
    var audio = listening(isActive: false)
    #expect(audio.startsAt == seconds(2))
    _ = audio.listen(to: id(2), mixing: [], at: seconds(1.5), &out)
    #expect(audio.startsAt == seconds(2), "another call does not delay it")
    audio.startDue(at: seconds(2), &out)
    audio.startDue(at: seconds(2), &out)
    holds(requests() == [.start] && audio.startsAt == nil)
    var held = listening(isActive: false)
    _ = held.listen(to: nil, mixing: [], at: seconds(1.5), &out)
    held.startDue(at: seconds(2), &out)
    holds(requests() == [] && held.startsAt == nil)
  }

  @Test mutating func `each call whose audio has changed is returned once, and nothing is requested for the same calls again`() {
    var audio = AudioSession()
    holds(audio.listen(to: nil, mixing: [], at: seconds(1), &out) == [] && out.isEmpty)
    holds(audio.listen(to: id(1), mixing: [], at: seconds(1), &out) == [id(1)])
    holds(audio.listen(to: id(2), mixing: [id(1)], at: seconds(1), &out) == [id(2)])
    holds(audio.listen(to: id(2), mixing: [id(1)], at: seconds(1), &out) == [])
    audio.runs(.running)
    #expect(audio.calls == [id(2), id(1)] && audio.parts(of: id(1)) == .running && audio.parts(of: id(3)) == .idle)
    holds(audio.listen(to: id(3), mixing: [], at: seconds(1), &out) == [id(2), id(1), id(3)])
    holds(out.names == ["listen", "listen", "mix", "listen", "mix"])
    audio.runs(.idle)
    #expect(audio.parts(of: id(3)) == .idle)
  }

  @Test mutating func `an active session is configured once, and after its release for the next call's activation again`() {
    var audio = listening()
    audio.configure(&out)
    holds(requests() == [])
    _ = audio.listen(to: nil, mixing: [], at: seconds(2), &out)
    audio.release(&out)
    audio.release(&out)
    holds(requests() == [.stop, .release])
    audio.configure(&out)
    _ = audio.listen(to: id(2), mixing: [], at: seconds(3), &out)
    holds(requests() == [.configure], "the activation was the last call's")
    audio.configure(&out)
    holds(requests() == [.configure], "not active: a second call configures, too")
  }

  @Test mutating func `changed hardware restarts audio that runs; a reset of the media services configures it first`() {
    var audio = AudioSession()
    audio.changed(isReset: false, &out)
    audio.changed(isReset: true, &out)
    holds(requests() == [])
    audio = listening()
    audio.changed(isReset: false, &out)
    audio.changed(isReset: true, &out)
    holds(requests() == [.restart, .configure, .restart])
  }

  @Test mutating func `a failure ends the calls, but not that of a start which the system did not activate`() {
    var audio = listening()
    holds(!audio.failed(.stop) && !audio.failed(.release) && audio.failed(.configure))
    audio.changed(isReset: false, &out)
    holds(requests() == [.restart], "it still runs")
    holds(audio.failed(.restart) && audio.failed(.start))
    audio.changed(isReset: false, &out)
    holds(requests() == [])
    audio.activated(at: seconds(2), &out)
    holds(requests() == [.start])
    var forced = listening(isActive: false)
    forced.startDue(at: seconds(2), &out)
    holds(!forced.failed(.start) && requests() == [.start])
    forced.activated(at: seconds(3), &out)
    holds(requests() == [.start] && forced.failed(.start))
  }

  @Test mutating func `a system that has dropped its calls activates again`() {
    var audio = listening()
    audio.reset()
    _ = audio.listen(to: nil, mixing: [], at: seconds(2), &out)
    _ = audio.listen(to: id(2), mixing: [], at: seconds(2), &out)
    holds(requests() == [.stop] && audio.startsAt == seconds(3))
  }
}
