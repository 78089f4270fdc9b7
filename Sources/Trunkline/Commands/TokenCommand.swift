import ArgumentParser
import CommandSupport

struct Token: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Prints a login token for a device, valid for one day.",
    discussion: """
      The key comes from the configuration's auth.jwt.key_file, which for RS256 and ES256 must hold the private key.

      EXAMPLES:
        trunkline token --user alice --device laptop --config gateway.yaml
        xdg-open "http://127.0.0.1:8080/#token=$(trunkline token --user alice --device browser)"
      """)

  @Option(help: "The user's id: the token's sub.") var user: String
  @Option(help: "The device's id: the token's dev.") var device: String
  @Option(
    help: ArgumentHelp(
      "An account that the device is logged in to (acct); may be repeated. Without it: default.", valueName: "name"))
  var account: [String] = []
  @OptionGroup var source: SettingsSource

  func run() throws {
    let settings = try source.load()
    guard settings.anyUser != nil || settings.users.contains(where: { $0.id == user }) else {
      complain("there is no user \"\(user)\" in \(source.config ?? "the embedded defaults")")
      throw ExitCode(2)
    }
    do {
      print(try LoginToken.make(settings, user: user, device: device, accounts: account))
    } catch {
      complain("auth.jwt: \(error)")
      throw ExitCode(2)
    }
  }
}
