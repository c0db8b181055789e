// The parts that the workloads share.

#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using Clock = std::chrono::steady_clock;
using Instant = Clock::time_point;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// splitmix64, as in the other languages.
class Random {
public:
    explicit Random(uint64_t seed) : state(seed) {}

    uint64_t below(uint64_t n) {
        state += 0x9E3779B97F4A7C15ull;
        uint64_t z = state;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        return (((z ^ (z >> 31)) >> 32) * n) >> 32;
    }

    // One to two hours.
    nanoseconds far() { return microseconds(3600000000ull + below(3600000000ull)); }

private:
    uint64_t state;
};

// The parameters of a workload: key=value.
class Args {
public:
    Args(int count, char** words) {
        for (int i = 0; i < count; i++) {
            std::string word = words[i];
            auto equals = word.find('=');
            if (equals == std::string::npos) throw std::runtime_error("not key=value: " + word);
            values[word.substr(0, equals)] = word.substr(equals + 1);
        }
    }

    std::string text(const std::string& key, const std::string& normal) const {
        auto found = values.find(key);
        return found == values.end() ? normal : found->second;
    }

    uint64_t number(const std::string& key, uint64_t normal) const {
        return std::stoull(text(key, std::to_string(normal)));
    }

    std::vector<uint64_t> list(const std::string& key, const std::string& normal) const {
        std::vector<uint64_t> numbers;
        std::stringstream words(text(key, normal));
        for (std::string word; std::getline(words, word, ',');)
            numbers.push_back(std::stoull(word));
        return numbers;
    }

private:
    std::map<std::string, std::string> values;
};

// The figures of one measurement.
class Figures {
public:
    Figures(std::string workload, std::vector<std::pair<const char*, uint64_t>> keys_and_values)
        : workload(std::move(workload)) {
        for (auto& [key, value] : keys_and_values) {
            if (!params.empty()) params += ',';
            params += std::string("\"") + key + "\":" + std::to_string(value);
        }
    }

    void emit(const std::string& metric, double value, const char* unit) const {
        std::printf("{\"peer\":\"asio\",\"workload\":\"%s\",\"params\":{%s},\"metric\":\"%s\","
                    "\"value\":%.3f,\"unit\":\"%s\"}\n",
                    workload.c_str(), params.c_str(), metric.c_str(), value, unit);
    }

    // The percentiles of nanoseconds, in microseconds.
    void distribution(const std::string& what, std::vector<int64_t> nanos) const {
        std::sort(nanos.begin(), nanos.end());
        auto percentile = [&](const char* name, double share) {
            auto rank = std::max<size_t>(1, std::ceil(nanos.size() * share));
            emit(what + name, nanos[rank - 1] / 1e3, "us");
        };
        percentile("_p50", 0.5);
        percentile("_p90", 0.9);
        percentile("_p99", 0.99);
        percentile("_p999", 0.999);
        emit(what + "_max", nanos.back() / 1e3, "us");
        emit(what + "_min", nanos.front() / 1e3, "us");
    }

private:
    std::string workload;
    std::string params;
};

// The resources that all threads of the process have used so far.
struct Usage {
    double cpu_ns;
    double sleeps;

    static Usage now() {
        rusage usage;
        getrusage(RUSAGE_SELF, &usage);
        auto nanos = [](timeval time) { return time.tv_sec * 1e9 + time.tv_usec * 1e3; };
        return {nanos(usage.ru_utime) + nanos(usage.ru_stime), double(usage.ru_nvcsw)};
    }

    // The usage per item, for `count` items.
    Usage since(Usage before, double count) const {
        return {(cpu_ns - before.cpu_ns) / count, (sleeps - before.sleeps) / count};
    }
};

inline double resident() {
    std::ifstream statm("/proc/self/statm");
    double size = 0, pages = 0;
    statm >> size >> pages;
    return pages * sysconf(_SC_PAGESIZE);
}

inline double nanos_since(Instant start) { return nanoseconds(Clock::now() - start).count(); }

// Waits until this many tasks have run.
class Done {
public:
    // This is never freed: the last task may still be in `hit` when `wait` has returned.
    static Done& of(uint64_t target) { return *new Done(target); }

    void hit() {
        if (count.fetch_add(1) + 1 == target) {
            std::lock_guard guard(lock);
            changed.notify_one();
        }
    }

    void wait() {
        std::unique_lock guard(lock);
        changed.wait(guard, [&] { return count.load() >= target; });
    }

private:
    explicit Done(uint64_t target) : target(target) {}

    std::atomic<uint64_t> count{0};
    uint64_t target;
    std::mutex lock;
    std::condition_variable changed;
};

// Each thread does `prepare`; when all are ready, this thread does `begin`, and all begin with the
// body together. Returns how long they took, in nanoseconds.
inline double prepared(uint64_t count, const std::function<void(uint64_t)>& prepare,
                       const std::function<void()>& begin,
                       const std::function<void(uint64_t)>& body) {
    std::atomic<uint64_t> ready{0};
    std::atomic<bool> go{false};
    std::vector<std::thread> threads;
    for (uint64_t number = 0; number < count; number++)
        threads.emplace_back([&, number] {
            prepare(number);
            ready++;
            while (!go) std::this_thread::yield();
            body(number);
        });
    // Sleeping, because yielding would take a processor from those that prepare.
    while (ready < count) std::this_thread::sleep_for(std::chrono::microseconds(100));
    begin();
    auto start = Clock::now();
    go = true;
    for (auto& thread : threads) thread.join();
    return nanos_since(start);
}

inline double together(uint64_t count, const std::function<void(uint64_t)>& body) {
    return prepared(count, [](uint64_t) {}, [] {}, body);
}

// How many of `count` the thread of this number has, of so many threads.
inline uint64_t share(uint64_t count, uint64_t threads, uint64_t number) {
    return count / threads + (number < count % threads);
}
