import ArgumentParser
import CommandSupport
import JSONWebToken

struct Token: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Prints a login token for a device, valid for one day.",
    discussion: """
      The key comes from the configuration's auth.jwt.key_file, which for RS256 and ES256 must hold the private key.

      EXAMPLES:
        trunkline token --user alice --device laptop --config gateway.yaml
        trunkline token --user carol --device phone --number +15551230001 --max-calls 2   # users[].claims allows it
        xdg-open "http://127.0.0.1:8080/#token=$(trunkline token --user alice --device browser)"
      """)

  @Option(help: "The user's id: the token's sub.") var user: String
  @Option(help: "The device's id: the token's dev.") var device: String
  @Option(
    help: ArgumentHelp(
      "An account that the device is logged in to (acct); may be repeated. Without it: default.", valueName: "name"))
  var account: [String] = []
  @Option(
    help: ArgumentHelp(
      "A number that the token gives to the user (the claim trunkline); may be repeated. The first is what the user calls from.",
      valueName: "number"))
  var number: [String] = []
  @Option(help: "The name that trunks are shown beside the number.") var name: String?
  @Option(help: "Outgoing calls at a time that the token allows.") var maxCalls: Int?
  @OptionGroup var source: SettingsSource

  func run() throws {
    let settings = try source.load()
    guard settings.anyUser != nil || settings.users.contains(where: { $0.id == user }) else {
      complain("there is no user \"\(user)\" in \(source.config ?? "the embedded defaults")")
      throw ExitCode(2)
    }
    let grant = TokenGrant(numbers: number, name: name, maxCalls: maxCalls)
    let grantsSomething = grant != TokenGrant()
    if grantsSomething {
      do {
        guard let rules = settings.grantRules else { throw TokenGrant.Fault("", "tokens may grant nothing: see users[].claims") }
        try rules.check(grant)
      } catch {
        complain("\(error)")
        throw ExitCode(2)
      }
    }
    do {
      Console.line(
        try LoginToken.make(settings, user: user, device: device, accounts: account, grant: grantsSomething ? grant : nil))
    } catch {
      complain("auth.jwt: \(error)")
      throw ExitCode(2)
    }
  }
}
