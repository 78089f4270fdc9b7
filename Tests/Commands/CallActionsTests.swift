import ArgumentParser
import Testing

@testable import trunkline

/// The meaning of the words of `trunkline calls …`, and the errors for unknown ones; `CallControlTests` tests their effects.
@Suite struct CallActionsTests {
  private let id = "5f0c7f0e-4a52-4c0e-9a1e-2f0d7f6f0a11"

  @Test(arguments: [
    ["play"], ["play", "ID"], ["play", "ID", "a.wav", "--off"], ["record"], ["stream", "ID"],
    ["stream", "ID", "https://bot.example"], ["stream", "ID", "ws://bot.example/"],
    ["stream", "ID", "wss://bot.example/", "--format", "mp3"], ["hold"], ["transfer", "ID"],
    ["transfer", "ID", "+49", "--user", "bob"], ["make", "alice"], ["make", "alice", "+49", "--first", "both"],
  ])
  func `half a command is refused with words that help`(words: [String]) {
    do {
      _ = try Calls.parseAsRoot(words.map { $0 == "ID" ? id : $0 })
      Issue.record("\(words) was taken")
    } catch {
      #expect(Calls.exitCode(for: error) == .validationFailure)
      #expect(Calls.fullMessage(for: error).contains("Usage: calls \(words[0])"), "\(Calls.fullMessage(for: error))")
    }
  }

  @Test func `on is the default of what can be on and off`() throws {
    let record = try #require(try Calls.parseAsRoot(["record", id]) as? Calls.Record)
    #expect(record.call == id && !record.off)
    #expect((try Calls.parseAsRoot(["record", id, "--off"]) as? Calls.Record)?.off == true)
    let play = try #require(try Calls.parseAsRoot(["play", id, "--off"]) as? Calls.Play)
    #expect(play.file == nil && play.off)
    #expect((try Calls.parseAsRoot(["play", id, "a.wav"]) as? Calls.Play)?.file == "a.wav")
    let stream = try #require(
      try Calls.parseAsRoot(["stream", id, "wss://bot.example/x", "--format", "pcm16"]) as? Calls.Stream)
    #expect(stream.url == "wss://bot.example/x" && stream.format == .pcm16)
    #expect((try Calls.parseAsRoot(["make", "alice", "+49"]) as? Calls.Make)?.first == .user)
    #expect((try Calls.parseAsRoot(["make", "alice", "+49", "--first", "number"]) as? Calls.Make)?.first == .number)
  }

  @Test func `every action has its help, with what it takes`() {
    for command in Calls.configuration.subcommands {
      let help = Calls.helpMessage(for: command)
      #expect(help.contains("USAGE: calls") && help.contains("OVERVIEW:"), "\(command)")
    }
  }
}
