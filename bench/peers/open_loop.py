"""Requests that come whether or not earlier ones were answered: Poisson at a rate. Prints one line: answers with status
200 a second, their p50 and p99 in ms, refusals with 429 and their p99, and all others.

usage: open_loop.py PORT RATE SECONDS TEXTS
"""
import asyncio
import json
import random
import sys
import time

port, rate, seconds, texts = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
bodies = [json.dumps({"inputs": line.strip()}).encode() for line in open(texts, encoding="utf-8") if line.strip()]
took = {}  # of each status
free = []  # connections that wait for a request


async def ask(body):
    begin = time.perf_counter()
    try:
        reader, writer = free.pop() if free else await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        status = int(head[9:12])
        if b"connection: close" in head.lower():
            writer.close()
        else:
            free.append((reader, writer))
    except (OSError, asyncio.IncompleteReadError):
        status = 0
    took.setdefault(status, []).append(time.perf_counter() - begin)


async def main():
    draw, tasks, due, end = random.Random(42), [], time.perf_counter(), time.perf_counter() + seconds
    while (due := due + draw.expovariate(rate)) < end:
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        tasks.append(asyncio.create_task(ask(draw.choice(bodies))))
    await asyncio.gather(*tasks)


begun = time.perf_counter()
asyncio.run(main())
seconds = time.perf_counter() - begun  # with the answers that came after the last request


def percentile(status, share):
    times = sorted(took.get(status, [0.0]))
    return 1e3 * times[min(int(share * len(times)), len(times) - 1)]


others = sum(len(times) for status, times in took.items() if status not in (200, 429))
print(f"OPEN {len(took.get(200, [])) / seconds:.1f} {percentile(200, 0.5):.2f} {percentile(200, 0.99):.2f} {len(took.get(429, []))} {percentile(429, 0.99):.2f} {others}")
