# Where it runs.
terraform {
  required_version = ">= 1.0"
}

provider "aws" {
  region = var.region
}

variable "region" {
  type    = string
  default = "eu-1"
}

locals {
  name = "shop"
  tags = { owner = local.name }
}

// The server.
resource "aws_instance" "web" {
  ami   = data.aws_ami.ubuntu.id
  count = length(var.names)
  lifecycle {
    create_before_destroy = true
  }
}

data "aws_ami" "ubuntu" {
  most_recent = true
}

module "network" {
  source = "./network"
}

output "address" {
  value = aws_instance.web[0].public_ip
}

resource "shop_table" "items" {
  dynamic "column" {
    for_each = var.columns
    content { name = column.value }
  }
}
