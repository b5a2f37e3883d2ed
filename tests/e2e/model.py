"""Makes the tiny model that a real vLLM serves in tests: a Llama of random weights.

Run by vLLM's own Python, which has torch and transformers:

    .parts/vllm/bin/python -P tests/e2e/model.py DIRECTORY HIDDEN_SIZE CONTEXT

CONTEXT is the longest prompt and answer together, in tokens.
HIDDEN_SIZE 128 (head size 32) works. With 64 (head size 16) vLLM on the CPU starts, says that it
is healthy, and its engine process dies of the first request: a crash that nobody had to fake.
"""

import sys

# pyright: basic, reportMissingImports=false
import torch
from tokenizers import ByteLevelBPETokenizer
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

SENTENCE = "the quick brown fox jumps over the lazy dog"
CHAT = "{% for message in messages %}{{ message['content'] }}{% endfor %}"


def make(directory: str, hidden_size: int, context: int) -> None:
    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator([SENTENCE], vocab_size=300, special_tokens=["<s>", "</s>"])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe._tokenizer, bos_token="<s>", eos_token="</s>"
    )
    tokenizer.chat_template = CHAT
    tokenizer.save_pretrained(directory)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden_size,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    LlamaForCausalLM(config).to(torch.float32).save_pretrained(directory)


if __name__ == "__main__":
    make(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
