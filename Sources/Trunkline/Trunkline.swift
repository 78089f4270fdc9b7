import ArgumentParser

@main
struct Trunkline: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "trunkline", abstract: "Bridges telephone trunks to app calls.", subcommands: [TrunkCommand.self, PhoneCommand.self])
}
