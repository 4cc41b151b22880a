// Two hosts on one machine: network namespaces with a cable between them.
#include <doctest/doctest.h>

#include "apps/pretrain/processes_setting.h"

using support::ProcessesSetting;

namespace {

int shell(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()); }

class TwoHosts : public ProcessesSetting {
 public:
  TwoHosts() {
    up_ = shell("ip netns add " + a_) == 0 && shell("ip netns add " + b_) == 0 &&
          shell("ip -n " + a_ + " link add eth0 type veth peer name eth0 netns " + b_) == 0 &&
          shell("ip -n " + a_ + " addr add 10.77.0.1/24 dev eth0") == 0 &&
          shell("ip -n " + b_ + " addr add 10.77.0.2/24 dev eth0") == 0;
    for (const std::string& host : {a_, b_})
      for (const std::string link : {"lo", "eth0"})
        up_ = up_ && shell("ip -n " + host + " link set " + link + " up") == 0;
    // What mpirun takes for ssh: host, then a command.
    support::write_text(directory / "agent.sh",
                        "shift\nexec ip netns exec " + b_ + " unshare -u sh -c \"hostname second; $*\"\n");
    mpirun = "ip netns exec " + a_ + " " + mpirun + " --host 10.77.0.1,10.77.0.2 --mca plm_rsh_agent 'sh " +
             (directory / "agent.sh").string() + "' --mca btl tcp,self --mca btl_tcp_if_include 10.77.0.0/24" +
             " --mca oob_tcp_if_include 10.77.0.0/24";
  }
  ~TwoHosts() {
    for (const std::string& host : {a_, b_}) shell("ip netns del " + host);
  }
  /// Prints why if there can be no such hosts.
  bool skipped() const {
    const std::string why = missing().empty() ? "network namespaces are not permitted here" : missing();
    if (!up_ || !missing().empty()) MESSAGE("SKIPPED: " << why);
    return !up_ || !missing().empty();
  }
  /// Each way, so that a model takes longer than the timeout.
  bool throttle(const std::string& rate) const {
    bool done = true;
    for (const std::string& host : {a_, b_})
      done =
          done && shell("tc -n " + host + " qdisc add dev eth0 root tbf rate " + rate + " burst 128kb limit 8mb") == 0;
    return done;
  }
  void set_link(const std::string& state) const { shell("ip -n " + b_ + " link set eth0 " + state); }

 private:
  std::string a_ = "bertrand-" + std::to_string(getpid()) + "-a", b_ = "bertrand-" + std::to_string(getpid()) + "-b";
  bool up_ = false;
};

}  // namespace

TEST_CASE("two hosts give the bits of one replica, and a cut link ends both") {
  const TwoHosts setting;
  if (setting.skipped()) return;
  const std::vector<std::string> flags = {"--steps",      "200", "--micro-batch-size",   "5", "--threads", "1",
                                          "--save-every", "5",   "--collective-timeout", "3"};
  REQUIRE(setting.run("whole", flags).code == 0);
  const auto check_same = [&](const std::string& run) {
    CHECK_MESSAGE(setting.code(run, 0) == 0, setting.of_rank(run, 0, "error"));
    setting.check_same(run, "whole", 200);
  };
  setting.run_processes("run", 2, flags);
  check_same("run");
  CHECK(setting.of_rank("run", 0, "out")
            .find("  sums        of 2 processes in messages: they do not see each other as on one host\n") !=
        std::string::npos);

  // tests/faults.sh, which has the machine alone, asks how soon.
  setting.disturb("cut", 2, flags, [&] {
    setting.set_link("down");
    CHECK(support::soon([&] { return setting.code("cut", 0) >= 0 && setting.code("cut", 1) >= 0; }));
    setting.set_link("up");
  });
  for (const int rank : {0, 1}) {
    CHECK(setting.code("cut", rank) == 8);
    CHECK(setting.of_rank("cut", rank, "error").find("process " + std::to_string(1 - rank) + " (host ") !=
          std::string::npos);
  }
  std::vector<std::string> resume = flags;
  resume.push_back("--resume");
  setting.run_processes("cut", 2, resume);
  check_same("cut");
}

TEST_CASE("a network that is slow is not taken for one that is cut") {
  const TwoHosts setting;
  if (setting.skipped()) return;
  support::write_text(setting.directory / "config.json",  // 3.1 million parameters, 12 MB: 6 s, of which 2 MB take 1 s
                      R"({"vocab_size": 57, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
                          "intermediate_size": 12000, "max_position_embeddings": 32, "type_vocab_size": 2})");
  const std::vector<std::string> flags = {"--steps", "1", "--micro-batch-size", "5", "--collective-timeout", "4"};
  REQUIRE(setting.run("whole", flags).code == 0);
  if (!setting.throttle("16mbit")) {
    MESSAGE("SKIPPED: tc is not permitted here");
    return;
  }
  setting.run_processes("run", 2, flags);
  for (const int rank : {0, 1}) CHECK_MESSAGE(setting.code("run", rank) == 0, setting.of_rank("run", rank, "error"));
  setting.check_same("run", "whole", 1);
}
